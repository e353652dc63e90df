import { expect, inject, it } from 'vitest';

import type { ClaimedTask } from '../../src/protocol/workers-api.js';
import { letGo, stall } from './stalls.js';
import { describeOnPostgres, drafts, freshQueue, submitAll, TestWorker } from './support.js';

/** Longer than a taken entry keeps its slot while nobody says that it was claimed. */
const stallSeconds = 13;

describeOnPostgres('a claim that Postgres answers late', (server) => {
  it.each([
    ['in memory', () => server().open()],
    ['in Redis', () => server().open({ redisUrl: inject('redisUrl') })],
  ])(
    'R-CH6: its slot was given to another: it is not handed out (%s)',
    async (_, open) => {
      const engine = await open();
      const queue = freshQueue();
      await engine.putQueue(queue, { maxConcurrency: 1 });
      const [first, second] = await submitAll(engine, drafts(2, { taskType: 'noop', queue }));
      await stall(server(), first ?? '', 'claim', stallSeconds);
      const worker = await TestWorker.register(engine, { queues: [queue] });
      const held: ClaimedTask[] = [];
      const poll = async () => {
        held.push(...(await worker.look(1, { waitMs: (stallSeconds + 2) * 1_000 })));
      };
      await Promise.all([poll(), poll()]);
      expect(held.map(({ taskId }) => taskId)).toEqual([second]);
      await letGo(server());
      await worker.completeAll(held);
      const late = await worker.takeOne();
      expect(late.taskId).toBe(first);
      await worker.complete(late);
    },
    120_000,
  );
});
