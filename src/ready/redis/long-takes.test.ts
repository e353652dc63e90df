import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRedis } from '../../../test/support/services/redis-server.js';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import type { TakeAnswer } from '../ready-queue.js';
import { Workbench } from '../workbench.contract.js';
import { openRedis } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';
import { countSteps } from './step-count.contract.js';

const named = (letter: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${letter}${index}`);

/** On the clock of the test. */
const scriptMs = 10;
const longestTakeMs = 1_000;

describe('workers that name 100 queues and 240 task types: a take is hundreds of scripts', () => {
  const request = { queues: named('q', 100), taskTypes: named('t', 240) };
  const closing: (() => Promise<unknown>)[] = [];
  const clock = new ManualClock();
  let bench: Workbench;

  beforeAll(async () => {
    const server = await startRedis();
    closing.push(() => server.stop());
    const connection = await openRedis(server.url, silentLog);
    closing.push(() => connection.close());
    const { counted } = countSteps(connection, () => clock.advance(scriptMs));
    const prefix = 'sluice:{test}:';
    const options = { connection: counted, bus: new LocalBus(), prefix, clock, log: silentLog };
    bench = await Workbench.open(async () => ({
      queue: new RedisReadyQueue(options),
      nowMs: () => clock.nowMs(),
      advance: (ms) => clock.advance(ms),
      driftMs: 0,
    }));
    const elsewhere = request.taskTypes.map((taskType) => bench.task({ queue: 'other', taskType }));
    await bench.offer(...elsewhere);
  }, 60_000);

  afterAll(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function takeInTime(): Promise<TakeAnswer> {
    const beganMs = clock.nowMs();
    const answer = await bench.answer({ ...request, count: 10 });
    expect(clock.nowMs() - beganMs).toBeLessThanOrEqual(longestTakeMs + scriptMs);
    return answer;
  }

  it('R-CH1: ends after a second, and finds by and by what there is', async () => {
    const offers = ['q3', 'q50', 'q96'].map((queue) => bench.task({ queue, taskType: 't200' }));
    await bench.offer(...offers);
    const taken: string[] = [];
    for (let nth = 0; nth < 200 && taken.length < offers.length; nth += 1) {
      const answer = await takeInTime();
      if (answer.kind === 'taken') taken.push(...answer.entries.map(({ lane }) => lane.queue));
      // Who found nothing lets others go first, for as long as it looked.
      else expect(answer).toMatchObject({ kind: 'wait', waitMs: longestTakeMs });
    }
    expect(taken.toSorted()).toEqual(['q3', 'q50', 'q96']);
  });
});
