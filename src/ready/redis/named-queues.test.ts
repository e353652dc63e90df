import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRedis } from '../../../test/support/services/redis-server.js';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import { Workbench } from '../workbench.contract.js';
import { openRedis } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';
import { countSteps } from './step-count.contract.js';

/** A script of this many steps takes about 10 ms on a slow core. */
const mostSteps = 12_000;

const closing: (() => Promise<unknown>)[] = [];

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

describe.each([1, 5, 20])('workers that name 100 queues with %i limits each', (limits) => {
  const queues = Array.from({ length: 100 }, (_, index) => `q${index}`);
  const full = queues.slice(0, 60);
  const open = queues.slice(60);
  let bench: Workbench;
  let longest: Awaited<ReturnType<typeof openCounted>>['longest'];

  const offerTo = (names: readonly string[]) =>
    bench.offer(...names.map((queue) => bench.task({ queue })));

  beforeAll(async () => {
    ({ bench, longest } = await openCounted());
    const own = Array.from({ length: limits }, (_, index) => ({
      ...{ unit: `u${index}`, rate: 1_000, perSeconds: 1, burst: null },
    }));
    await bench.queue.configure({
      limits: [],
      queues: queues.map((queue) => bench.settings({ limits: own, maxConcurrency: 1 }, queue)),
    });
    // Those that are full were served before the others, so that their turn comes first.
    await offerTo(full);
    expect(await bench.take({ queues: full, count: 60 })).toHaveLength(60);
    await offerTo(queues);
  }, 60_000);

  afterAll(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  it('R-HA3: get the tasks of those that may go, behind 60 that are full, by short scripts', async () => {
    longest.forget();
    const taken: string[] = [];
    for (let nth = 0; nth < 10 && taken.length < 40; nth += 1) {
      const answer = await bench.answer({ queues, count: 10 });
      expect(answer).toMatchObject({ kind: 'taken' });
      if (answer.kind === 'taken') taken.push(...answer.entries.map(({ lane }) => lane.queue));
    }
    expect(taken.toSorted()).toEqual(open.toSorted());
    expect(await bench.answer({ queues, count: 10 })).toMatchObject({ kind: 'wait', waitMs: null });
    expect(longest.found().steps).toBeLessThan(mostSteps);
  });
});
