import { expect, inject, it } from 'vitest';

import { ManualClock } from '../../src/runtime/clock.js';
import { until } from '../support/until.js';
import {
  describeOnPostgres,
  drafts,
  freshQueue,
  submitAll,
  TestWorker,
  untilStatus,
} from './support.js';

describeOnPostgres('a missing input', (server) => {
  it.each([
    ['in memory', {}],
    ['in Redis', { redisUrl: inject('redisUrl') }],
  ])(
    'R-HA6: ends its attempt as a dead letter that says so, and no handler runs with {}, %s',
    async (_where, ready) => {
      const clock = new ManualClock(Date.now());
      const engine = await server().open({ clock, ...ready });
      const queue = freshQueue();
      await engine.putQueue(queue, { maxConcurrency: 2 });
      const draft = { taskType: 't', queue, maxRetries: 3, delaySeconds: 60 };
      const [lost, kept] = await submitAll(engine, drafts(2, draft));
      if (lost === undefined || kept === undefined) throw new Error('two were submitted');
      await server().sql('delete from sluice.task_inputs where task_id = $1', [lost]);
      const worker = await TestWorker.register(engine, { queues: [queue] });
      clock.advance(61_000);
      expect(await worker.takeOne()).toMatchObject({ taskId: kept, parameters: { index: 1 } });
      const view = await untilStatus(engine, lost, 'dead_letter');
      expect(view.error).toMatchObject({ code: 'INPUT_MISSING', retriable: false });
      expect(view.retryCount).toBe(0);
      // Its slot is free, and a replay ends the same way.
      expect((await engine.getQueue(queue)).live.running).toBe(1);
      await engine.replayTask(lost);
      await until('it to end again', async () => {
        expect(await worker.look()).toEqual([]);
        return (await engine.getTask(lost)).status === 'dead_letter';
      });
    },
  );
});
