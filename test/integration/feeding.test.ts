import { expect, it } from 'vitest';

import { TaskIdSource } from '../../src/domain/ids.js';
import type { EngineContext } from '../../src/engine/context.js';
import { TaskEvents } from '../../src/engine/events.js';
import { Feeder } from '../../src/engine/feeder.js';
import { QueueDirectory } from '../../src/engine/queue-directory.js';
import { defaultEngineSettings } from '../../src/engine/settings.js';
import { Places } from '../../src/engine/windows.js';
import { MemoryReadyQueue } from '../../src/ready/memory-ready-queue.js';
import { systemClock } from '../../src/runtime/clock.js';
import { silentLog } from '../../src/runtime/log.js';
import { putQueue } from '../../src/store/queues.js';
import { defaultQueueSettings } from '../../src/domain/queue-settings.js';
import { seedTask } from '../store/seed.js';
import { describeOnEveryDatabase } from '../store/support.js';

describeOnEveryDatabase('the feeder', (db) => {
  it('R-CH8: what found its window full comes before anything younger', async () => {
    const ready = new MemoryReadyQueue({ clock: systemClock });
    const context: EngineContext = {
      db: db(),
      ready,
      events: new TaskEvents(() => undefined),
      settings: defaultEngineSettings,
      log: silentLog,
      random: Math.random,
      clock: null,
    };
    await putQueue(db(), 'q', { ...defaultQueueSettings, maxReady: 4 }, null);
    const queues = new QueueDirectory(context);
    await queues.load();
    await ready.restore({ queues: queues.all(), running: [] });
    const waiting = [];
    for (let n = 0; n < 6; n++) {
      waiting.push(await seedTask(db(), { queue: 'q', taskType: 't', status: 'pending' }));
    }

    const feeder = new Feeder(context, queues, new Places(ready));
    // Somebody takes the places between the feeder's look and its offer.
    const intruders = intruding(ready);
    await feeder.tick();
    expect(intruders.stop()).toBe(4);

    const request = { taskTypes: null, capabilities: [], queues: null, count: 4 };
    const first = await ready.take(request);
    expect(first.kind === 'taken' && first.entries.length).toBe(4);
    await feeder.tick();
    const second = await ready.take(request);
    expect(second.kind === 'taken' && second.entries.map(({ taskId }) => taskId)).toEqual(
      waiting.slice(0, 4).map(({ taskId }) => taskId),
    );
    await ready.close();
  });
});

/** Fills the window just before the next offer. */
function intruding(ready: MemoryReadyQueue): { stop(): number } {
  const offer = ready.offer.bind(ready);
  const ids = new TaskIdSource();
  let intruded = 0;
  ready.offer = async (offers) => {
    ready.offer = offer;
    const stale = Array.from({ length: 4 }, (_, seq) => ({
      taskId: ids.next(Date.now()),
      lane: { queue: 'q', taskType: 't', capabilities: [] },
      priority: 'medium' as const,
      ageMs: 0,
      eligibleAtMs: 0,
      seq,
      cost: {},
    }));
    await offer(stale);
    intruded = stale.length;
    return offer(offers);
  };
  return { stop: () => intruded };
}
