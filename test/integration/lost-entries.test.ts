import { expect, it, vi } from 'vitest';

import { defaultQueueSettings } from '../../src/domain/queue-settings.js';
import { Checkpoints } from '../../src/engine/checkpoints.js';
import { Feeder } from '../../src/engine/feeder.js';
import { LostEntries } from '../../src/engine/lost-entries.js';
import { QueueDirectory } from '../../src/engine/queue-directory.js';
import { RecentWork } from '../../src/engine/recent-work.js';
import { Counters } from '../../src/engine/counters.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import type { Window } from '../../src/ready/ready-queue.js';
import { systemClock } from '../../src/runtime/clock.js';
import { changeTask } from '../../src/store/change-task.js';
import type { Database } from '../../src/store/database.js';
import { wakeDue } from '../../src/store/feed-line.js';
import { putQueue } from '../../src/store/queues.js';
import { submitTasks } from '../../src/store/submit-tasks.js';
import { newTasks, submitOne } from '../store/lifecycle.js';
import { describeOnEveryDatabase } from '../store/support.js';
import { contextOf } from './engine-parts.js';

const lane = { queue: 'q', taskType: 't', capabilities: [] };
const window = { lane, priority: 'medium' } as const;

/** A lap alone with its parts: tests say when it walks. */
class Lap {
  readonly ready = new MemoryReadyQueue({ clock: systemClock });
  readonly #queues: QueueDirectory;
  readonly #feeder: Feeder;
  readonly #lostEntries: LostEntries;

  private constructor(db: Database) {
    const context = contextOf(db, this.ready);
    this.#queues = new QueueDirectory(context, new Checkpoints(context));
    this.#feeder = new Feeder(context, this.#queues, new RecentWork());
    this.#lostEntries = new LostEntries(context, this.#feeder, new Counters(context));
  }

  static async begin(db: Database, behind: readonly Window[]): Promise<Lap> {
    const lap = new Lap(db);
    await lap.#queues.load();
    await lap.ready.beginRestore();
    const configuration = lap.#queues.configuration();
    await lap.ready.restore({ generation: 1, ...configuration, levels: [], running: [], behind });
    await lap.#feeder.fill();
    return lap;
  }

  async walk(): Promise<void> {
    this.#lostEntries.beginLap();
    while ((await this.#lostEntries.tick()) < 1_000);
  }
}

describeOnEveryDatabase('the lap for lost entries', (db) => {
  it('R-RE6: what was given another priority while the lap looked at it is offered as it is', async () => {
    const { taskId } = await submitOne(db(), { ...lane, priority: 'low' });
    const lap = await Lap.begin(db(), []);
    vi.spyOn(lap.ready, 'missing').mockImplementationOnce(async (taskIds) => {
      await changeTask(db(), taskId, { priority: 'high' }, null);
      await wakeDue(db(), 1, null);
      return taskIds;
    });
    await lap.walk();
    expect((await lap.ready.live('q')).depth).toMatchObject({ high: 1, low: 0 });
    await lap.ready.close();
  });

  it('R-RE6: it finds what was lost, and goes no further than the line was offered', async () => {
    await putQueue(db(), 'q', { ...defaultQueueSettings, maxReady: 300 }, null);
    const tasks = newTasks(1_000, lane);
    await submitTasks(db(), tasks, null);
    const taskIds = tasks.map(({ taskId }) => taskId);
    const lap = await Lap.begin(db(), [window]);
    await lap.ready.remove(taskIds.slice(100, 102));
    const pieces = vi.spyOn(lap.ready, 'look');
    await lap.walk();
    // Three of what is held, and one that begins what was left.
    expect(pieces.mock.calls.length).toBeLessThanOrEqual(5);
    const taken = await lap.ready.take({
      taskTypes: null,
      capabilities: [],
      queues: null,
      count: 1_000,
    });
    expect(taken).toMatchObject({
      kind: 'taken',
      entries: taskIds.slice(0, 300).map((taskId) => ({ taskId })),
    });
    await lap.ready.close();
  });
});
