import { expect, it, vi } from 'vitest';

import { IdSource, type TaskId } from '../../src/domain/ids.js';
import { defaultQueueSettings } from '../../src/domain/queue-settings.js';
import type { EngineContext } from '../../src/engine/context.js';
import { Checkpoints } from '../../src/engine/checkpoints.js';
import { Feeder } from '../../src/engine/feeder.js';
import { QueueDirectory } from '../../src/engine/queue-directory.js';
import { RecentWork } from '../../src/engine/recent-work.js';
import { defaultEngineSettings } from '../../src/engine/settings.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import type { Taken, Window } from '../../src/ready/ready-queue.js';
import { systemClock } from '../../src/runtime/clock.js';
import { Loop } from '../../src/runtime/loop.js';
import type { Database } from '../../src/store/database.js';
import { putQueue } from '../../src/store/queues.js';
import { submitTasks } from '../../src/store/submit-tasks.js';
import { newTasks } from '../store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../store/support.js';
import { until } from '../support/until.js';
import { contextOf } from './engine-parts.js';

const lane = { queue: 'q', taskType: 't', capabilities: [] };
const window = { lane, priority: 'medium' } as const;
const hourMs = 3_600_000;

/** A feeder alone with its parts: tests take, and tell it so or not. */
class Feeding {
  readonly ready: MemoryReadyQueue;
  readonly feeder: Feeder;
  readonly queues: QueueDirectory;
  readonly recent = new RecentWork();

  constructor(
    db: Database,
    { mode, ready }: { mode: EngineContext['mode']; ready?: MemoryReadyQueue },
  ) {
    this.ready = ready ?? new MemoryReadyQueue({ clock: systemClock });
    const context = {
      ...contextOf(db, this.ready),
      mode,
      // What is discovered once is all that it hears from Postgres.
      settings: { ...defaultEngineSettings, discoverIntervalMs: hourMs },
    };
    this.queues = new QueueDirectory(context, new Checkpoints(context));
    this.feeder = new Feeder(context, this.queues, this.recent);
    this.feeder.begin(() => undefined);
  }

  static async begin(db: Database, maxReady: number): Promise<Feeding> {
    await putQueue(db, 'q', { ...defaultQueueSettings, maxReady }, null);
    const feeding = new Feeding(db, { mode: 'memory' });
    await feeding.queues.load();
    await feeding.restore();
    return feeding;
  }

  async restore(behind: readonly Window[] = [window]): Promise<void> {
    await this.ready.beginRestore();
    const configuration = this.queues.configuration();
    const restored = { generation: 1, ...configuration, levels: [], running: [] };
    await this.ready.restore({ ...restored, behind });
    this.feeder.discoverSoon();
  }

  /** Until there is nothing to do. */
  async feed(): Promise<void> {
    while ((await this.feeder.tick()) === 0);
  }

  async take(count: number): Promise<readonly Taken[]> {
    const taken = await this.ready.take({ taskTypes: null, capabilities: [], queues: null, count });
    return taken.kind === 'taken' ? taken.entries : [];
  }

  async room(): Promise<number> {
    const [look] = await this.ready.look([window]);
    return look?.room ?? -1;
  }
}

/** In line before anybody looks: the ready queue is told that its window is behind. */
async function lineOf(db: Database, count: number): Promise<TaskId[]> {
  const tasks = newTasks(count, { queue: 'q', taskType: 't' });
  for (let from = 0; from < count; from += 1_000) {
    await submitTasks(db, tasks.slice(from, from + 1_000), null);
  }
  return tasks.map(({ taskId }) => taskId);
}

describeOnEveryDatabase('the feeder', (db) => {
  it('R-CH8: what is fed is known when it is claimed', async () => {
    const feeding = await Feeding.begin(db(), 10);
    const taskIds = await lineOf(db(), 25);
    await feeding.feed();
    const known = taskIds.map((taskId) => feeding.recent.takeTask(taskId)?.parametersJson ?? null);
    expect(known).toEqual([...Array<string>(10).fill('{"n":1}'), ...Array<null>(15).fill(null)]);
  });

  it('R-CH8: of a long line as much is ready as is taken soon, in order', async () => {
    const feeding = await Feeding.begin(db(), 10_000);
    const taskIds = await lineOf(db(), 2_600);
    await feeding.feed();
    expect(await feeding.room()).toBe(8_000);
    const order: TaskId[] = [];
    while (order.length < taskIds.length) {
      const taken = await feeding.take(300);
      expect(taken.length).toBeGreaterThan(0);
      order.push(...taken.map(({ taskId }) => taskId));
      feeding.feeder.noteTaken(taken);
      await feeding.feed();
    }
    expect(order).toEqual(taskIds);
  });

  it('R-RE6: what the ready queue still took for running is offered again a moment later', async () => {
    const feeding = await Feeding.begin(db(), 10);
    const taskIds = await lineOf(db(), 3);
    await feeding.feed();
    const running = await feeding.take(3);
    await feeding.ready.confirm(running);
    // Another server ended these attempts, and has not told the ready queue yet.
    await db().query(
      `update sluice.tasks set status = 'pending', waits_for = 'time', run_at = now()`,
    );
    feeding.feeder.noteDue(0);
    await feeding.feed();
    expect(await feeding.take(3)).toEqual([]);
    await feeding.ready.finish(
      running.map(({ taskId, grant }) => ({
        taskId,
        grant,
        queue: 'q',
        reserved: {},
        usage: null,
      })),
    );
    const taken = await until('them to be offered again', async () => {
      await feeding.feeder.tick();
      const entries = await feeding.take(3);
      return entries.length === 0 ? null : entries;
    });
    expect(taken.map(({ taskId }) => taskId)).toEqual(taskIds);
  });

  it.each([1, 2, 10, 400])('R-CH8: a window of %i never runs dry, in order', async (maxReady) => {
    const feeding = await Feeding.begin(db(), maxReady);
    const waiting = await lineOf(db(), Math.min(maxReady * 5, 1_000));
    await feeding.feed();
    const order: TaskId[] = [];
    const half = Math.max(1, Math.floor(maxReady / 2));
    while (order.length < waiting.length) {
      const taken = await feeding.take(half);
      expect(taken.length).toBe(Math.min(half, waiting.length - order.length));
      order.push(...taken.map(({ taskId }) => taskId));
      feeding.feeder.noteTaken(taken);
      await feeding.feed();
    }
    expect(order).toEqual(waiting);
    await feeding.ready.close();
  });

  it.each([3, 40])(
    'R-CH8: %i large windows that are hungry at once are all fed',
    async (windows) => {
      const feeding = await Feeding.begin(db(), 10_000);
      const types = Array.from({ length: windows }, (_, n) => `t${n}`);
      const tasks = types.flatMap((taskType) => newTasks(1, { queue: 'q', taskType }));
      await submitTasks(db(), tasks, null);
      await feeding.restore(
        types.map((taskType) => ({ lane: { ...lane, taskType }, priority: 'medium' })),
      );
      await feeding.feed();
      expect(await feeding.take(windows)).toHaveLength(windows);
      await feeding.ready.close();
    },
  );

  it('R-CH8: a window that is full costs Postgres nothing', async () => {
    const feeding = await Feeding.begin(db(), 10);
    await lineOf(db(), 50);
    await feeding.feed();
    expect(await feeding.room()).toBe(0);
    const statements = vi.spyOn(db(), 'query');
    for (let n = 0; n < 5; n++) {
      feeding.feeder.noteTaken([window]);
      await feeding.feed();
    }
    expect(statements).not.toHaveBeenCalled();
    statements.mockRestore();
    await feeding.ready.close();
  });

  it('R-CH8: what found its window full comes before anything younger', async () => {
    const feeding = await Feeding.begin(db(), 4);
    const waiting = await lineOf(db(), 6);
    // Somebody takes the places between the feeder's look and its feed.
    const intruders = intruding(feeding.ready);
    await feeding.feed();
    expect(intruders.stop()).toBe(4);

    const first = await feeding.take(4);
    expect(first).toHaveLength(4);
    feeding.feeder.noteTaken(first);
    await feeding.feed();
    const second = await feeding.take(4);
    expect(second.map(({ taskId }) => taskId)).toEqual(waiting.slice(0, 4));
    await feeding.ready.close();
  });

  it('R-CH8: writes nothing', async () => {
    const feeding = await Feeding.begin(db(), 100);
    await lineOf(db(), 50);
    const rows = () => db().query('select xmin, ctid, * from sluice.tasks order by seq');
    const before = await rows();
    await feeding.feed();
    expect(await feeding.room()).toBe(50);
    expect(await rows()).toEqual(before);
    await feeding.ready.close();
  });

  it('R-RE7: a ready queue without its contents is not fed; then its line is read anew', async () => {
    const feeding = await Feeding.begin(db(), 10);
    await feeding.ready.close();
    const waiting = await lineOf(db(), 50);
    const lines = vi.spyOn(feeding.ready, 'feed');
    for (let n = 0; n < 5; n++) expect(await feeding.feeder.tick()).toBeGreaterThan(0);
    expect(lines).not.toHaveBeenCalled();
    await feeding.restore();
    await feeding.feed();
    const taken = await feeding.take(10);
    expect(taken.map(({ taskId }) => taskId)).toEqual(waiting.slice(0, 10));
    await feeding.ready.close();
  });

  it('R-RE7: what could not be offered is read from the line, as soon as it can', async () => {
    const feeding = await Feeding.begin(db(), 10);
    await feeding.feed();
    await feeding.ready.close();
    const waiting = await lineOf(db(), 3);
    const { ready, feeder } = feeding;
    feeder.noteUnoffered(
      waiting.toReversed().map((taskId, nth) => ({
        taskId,
        ...window,
        ageMs: 0,
        eligibleAtMs: nth,
        seq: 0,
        cost: {},
      })),
    );
    expect(await feeder.tick()).toBeGreaterThan(0);
    await ready.restore({
      generation: 2,
      limits: [],
      queues: [],
      levels: [],
      running: [],
      behind: [],
    });
    await feeding.feed();
    const taken = await feeding.take(10);
    expect(taken.map(({ taskId }) => taskId)).toEqual(waiting);
    await ready.close();
  });
});

/**
 * The ready queue that servers share is in Redis; here two feeders share one in memory, which shows
 * what they do to each other.
 */
describeOnPostgres('feeders of two servers', (postgres) => {
  it.each([1, 10, 100])(
    'R-CH8, R-CH12: feed one window of %i, no task twice, in order',
    async (maxReady) => {
      const { db } = postgres();
      const first = await Feeding.begin(db, maxReady);
      const feedings = [await sharing(db, first), await sharing(await postgres().open(), first)];
      const waiting = await lineOf(db, Math.min(maxReady * 20, 600));
      const loops = feedings.map(({ feeder }) => looping(feeder));
      const order: TaskId[] = [];
      const deadlineMs = performance.now() + 120_000;
      while (order.length < waiting.length && performance.now() < deadlineMs) {
        const taken = await first.take(Math.ceil(maxReady / 3));
        order.push(...taken.map(({ taskId }) => taskId));
        // Each hears of what its own workers take.
        feedings[order.length % 2]?.feeder.noteTaken(taken);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await Promise.all(loops.map((loop) => loop.stop()));
      expect(order).toEqual(waiting);
      await first.ready.close();
    },
  );

  it('R-CH8: what is fed is known to whoever fed it', async () => {
    const { db } = postgres();
    const first = await Feeding.begin(db, 10);
    const feeding = await sharing(db, first);
    const taskIds = await lineOf(db, 15);
    await feeding.feed();
    const known = taskIds.filter((taskId) => feeding.recent.takeTask(taskId) !== null);
    expect(known).toEqual(taskIds.slice(0, 10));
  });

  it('R-CH8: of a long line as much is ready as is taken until the next look', async () => {
    const { db } = postgres();
    const first = await Feeding.begin(db, 10_000);
    const feeding = await sharing(db, first);
    await lineOf(db, 4_200);
    await feeding.feed();
    expect(await feeding.room()).toBe(6_000);
  });

  it('R-CH12: what the workers of another server empty is refilled soon', async () => {
    const { db } = postgres();
    const first = await Feeding.begin(db, 10);
    const feeding = await sharing(db, first);
    const waiting = await lineOf(db, 100);
    const loop = looping(feeding.feeder);
    const order: TaskId[] = [];
    const beganMs = performance.now();
    while (order.length < waiting.length && performance.now() - beganMs < 120_000) {
      // Nobody tells this feeder.
      order.push(...(await first.take(10)).map(({ taskId }) => taskId));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await loop.stop();
    expect(order).toEqual(waiting);
    await first.ready.close();
  });
});

async function sharing(db: Database, { ready }: Feeding): Promise<Feeding> {
  const feeding = new Feeding(db, { mode: 'redis', ready });
  await feeding.queues.load();
  return feeding;
}

function looping(feeder: Feeder): Loop {
  const loop = new Loop({
    tick: () => feeder.tick(),
    onError: (error) => {
      throw error;
    },
  });
  feeder.begin(() => {
    loop.wake();
  });
  loop.start();
  return loop;
}

/** Fills the window just before the next feed. */
function intruding(ready: MemoryReadyQueue): { stop(): number } {
  const feed = ready.feed.bind(ready);
  const ids = new IdSource();
  let intruded = 0;
  ready.feed = async (stretches) => {
    ready.feed = feed;
    // Older than all that is left, so that they come in.
    const old = Array.from({ length: 4 }, (_, seq) => ({
      taskId: ids.nextTaskId(Date.now()),
      ...window,
      ageMs: 0,
      eligibleAtMs: -1,
      seq,
      cost: {},
    }));
    const [look] = await ready.look([window]);
    const round = look?.left?.round ?? -1;
    const next = look?.left?.from ?? null;
    await feed([{ window, round, offers: old, next }]);
    intruded = old.length;
    return feed(stretches);
  };
  return { stop: () => intruded };
}
