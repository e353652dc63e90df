import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRedis } from '../../../test/support/services/redis-server.js';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import { Workbench } from '../workbench.contract.js';
import { openRedis } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';
import { mostSteps } from './step-bound.js';
import { countSteps } from './step-count.contract.js';

const closing: (() => Promise<unknown>)[] = [];

/** A ready queue on a Redis of its own, in which every script counts what it reads and writes. */
async function openCounted() {
  const server = await startRedis();
  closing.push(() => server.stop());
  const connection = await openRedis(server.url, silentLog);
  closing.push(() => connection.close());
  const { counted, longest } = countSteps(connection);
  const clock = new ManualClock();
  const prefix = 'sluice:{test}:';
  const options = { connection: counted, bus: new LocalBus(), prefix, clock, log: silentLog };
  const bench = await Workbench.open(async () => ({
    queue: new RedisReadyQueue(options),
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    driftMs: 0,
  }));
  return { bench, longest };
}

describe.each([1, 5, 20])('500 queues with %i limits each, one of them shared', (limits) => {
  const queues = Array.from({ length: 500 }, (_, index) => `q${index}`);
  let bench: Workbench;
  let longest: Awaited<ReturnType<typeof openCounted>>['longest'];

  beforeAll(async () => {
    ({ bench, longest } = await openCounted());
    await bench.share('all', { unit: 'requests', rate: 1e6, perSeconds: 1, burst: null });
    const own = Array.from({ length: limits - 1 }, (_, index) => ({
      ...{ unit: `u${index}`, rate: 1_000, perSeconds: 1, burst: null },
    }));
    const settings = { limits: [{ use: 'all' }, ...own] };
    await bench.queue.configure({
      limits: [],
      queues: queues.map((queue) => bench.settings(settings, queue)),
    });
  }, 120_000);

  afterAll(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  it.each([
    { who: 'every type', request: {} },
    { who: 'one type', request: { taskTypes: ['t'] } },
    { who: 'all queues by name', request: { queues } },
  ])(
    'R-HA3: one take for $who gets all by short scripts',
    async ({ request }) => {
      await bench.offer(...queues.map((queue) => bench.task({ queue, cost: { u0: 1 } })));
      longest.forget();
      let taken = 0;
      for (let nth = 0; nth < 20 && taken < 500; nth += 1) {
        const answer = await bench.answer({ ...request, count: 500 });
        taken += answer.kind === 'taken' ? answer.entries.length : 0;
        if (taken < 500) expect(answer).toMatchObject({ waitMs: 0 });
      }
      expect(taken).toBe(500);
      expect(longest.found().steps).toBeLessThan(mostSteps);
    },
    60_000,
  );
});
