import { expect, it, vi } from 'vitest';

import { Checkpoints } from '../../src/engine/checkpoints.js';
import type { EngineContext } from '../../src/engine/context.js';
import { TaskEvents } from '../../src/engine/events.js';
import { Feeder } from '../../src/engine/feeder.js';
import { LostEntries } from '../../src/engine/lost-entries.js';
import { QueueDirectory } from '../../src/engine/queue-directory.js';
import { defaultEngineSettings } from '../../src/engine/settings.js';
import { Throughput } from '../../src/engine/throughput.js';
import { Places } from '../../src/engine/windows.js';
import { MemoryReadyQueue } from '../../src/ready/memory-ready-queue.js';
import { LocalBus } from '../../src/runtime/bus.js';
import { systemClock } from '../../src/runtime/clock.js';
import { silentLog } from '../../src/runtime/log.js';
import { changeTask } from '../../src/store/change-task.js';
import type { Database } from '../../src/store/database.js';
import { feedBacklog } from '../../src/store/feed-backlog.js';
import { submitOne } from '../store/lifecycle.js';
import { describeOnEveryDatabase } from '../store/support.js';

const lane = { queue: 'q', taskType: 't', capabilities: [] };

async function openEmpty(): Promise<MemoryReadyQueue> {
  const ready = new MemoryReadyQueue({ clock: systemClock });
  await ready.beginRestore();
  await ready.restore({ generation: 1, limits: [], queues: [], levels: [], running: [] });
  return ready;
}

function lapOver(db: Database, ready: MemoryReadyQueue): LostEntries {
  const context: EngineContext = {
    db,
    ready,
    bus: new LocalBus(),
    closeLinks: () => Promise.resolve(),
    mode: 'memory',
    events: new TaskEvents(() => undefined),
    settings: defaultEngineSettings,
    log: silentLog,
    random: Math.random,
    clock: null,
  };
  const queues = new QueueDirectory(context, new Checkpoints(context));
  return new LostEntries(context, new Feeder(context, queues, new Places(ready)), new Throughput());
}

describeOnEveryDatabase('the lap for lost entries', (db) => {
  it('R-RE6: what was given another priority while the lap looked at it is offered as it is', async () => {
    const { taskId } = await submitOne(db(), { ...lane, priority: 'low' });
    const ready = await openEmpty();
    vi.spyOn(ready, 'missing').mockImplementationOnce(async (taskIds) => {
      await changeTask(db(), taskId, { priority: 'high' }, null);
      await feedBacklog(db(), [{ lane, priority: 'high', limit: 1 }], null);
      return taskIds;
    });
    const lap = lapOver(db(), ready);
    lap.beginLap();
    await lap.tick();
    expect((await ready.live('q')).depth).toMatchObject({ high: 1, low: 0 });
    await ready.close();
  });
});
