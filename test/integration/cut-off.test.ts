import { describe, expect, it } from 'vitest';

import { openEngine } from '../../src/engine/open-engine.js';
import { freshPglite } from '../support/pglite.js';
import { until } from '../support/until.js';
import { drafts, quickTicks, submitAll, TestWorker } from './support.js';

const queue = 'one-service';

describe('a worker that is cut off from the service of its queue', () => {
  it.each(['concentrate', 'spread'] as const)(
    'R-RE9, R-RE11: does not keep the queue stopped while another one waits (%s)',
    async (wakeOrder) => {
      const engine = await openEngine({
        database: freshPglite(),
        settings: { ...quickTicks, wakeOrder },
      });
      const cutOff = await TestWorker.register(engine, { queues: [queue] });
      const healthy = await TestWorker.register(engine, { queues: [queue] });
      await submitAll(engine, drafts(20, { taskType: 'call', queue }));
      for (const task of await cutOff.take(3)) await cutOff.fail(task, { code: 'RATE_LIMITED' });
      let stopped = false;
      let probes = 0;
      let answered = 0;
      const failing = async () => {
        for (const task of await cutOff.look(4, { waitMs: 1_000 })) {
          if (answered === 0) probes += 1;
          await cutOff.fail(task, { code: 'RATE_LIMITED' });
        }
      };
      const answering = async () => {
        for (const task of await healthy.look(4, { waitMs: 1_000 })) {
          await healthy.complete(task);
          answered += 1;
        }
      };
      const work = async (once: () => Promise<void>) => {
        while (!stopped) await once();
      };
      const working = Promise.all([work(failing), work(answering)]);
      try {
        await until('the healthy one to be asked', () => answered > 0);
        expect(probes).toBeLessThanOrEqual(3);
      } finally {
        stopped = true;
        await working;
        await engine.close();
      }
    },
  );
});
