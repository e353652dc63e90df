import { expect, it, vi } from 'vitest';

import { IdSource, type TaskId } from '../../src/domain/ids.js';
import { defaultQueueSettings } from '../../src/domain/queue-settings.js';
import type { EngineContext } from '../../src/engine/context.js';
import { TaskEvents } from '../../src/engine/events.js';
import { Checkpoints } from '../../src/engine/checkpoints.js';
import { Feeder } from '../../src/engine/feeder.js';
import { QueueDirectory } from '../../src/engine/queue-directory.js';
import { defaultEngineSettings } from '../../src/engine/settings.js';
import { Places } from '../../src/engine/windows.js';
import { MemoryReadyQueue } from '../../src/ready/memory-ready-queue.js';
import type { Taken } from '../../src/ready/ready-queue.js';
import { LocalBus } from '../../src/runtime/bus.js';
import { systemClock } from '../../src/runtime/clock.js';
import { silentLog } from '../../src/runtime/log.js';
import { Loop } from '../../src/runtime/loop.js';
import type { Database } from '../../src/store/database.js';
import { putQueue } from '../../src/store/queues.js';
import { returnToBacklog } from '../../src/store/return-to-backlog.js';
import { submitTasks } from '../../src/store/submit-tasks.js';
import { newTasks } from '../store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../store/support.js';
import { until } from '../support/until.js';

const lane = { queue: 'q', taskType: 't', capabilities: [] };
const hourMs = 3_600_000;

/** A feeder alone with its parts: tests take, and tell it so or not. */
class Feeding {
  readonly ready: MemoryReadyQueue;
  readonly feeder: Feeder;
  readonly queues: QueueDirectory;

  constructor(
    db: Database,
    { mode, ready }: { mode: EngineContext['mode']; ready?: MemoryReadyQueue },
  ) {
    this.ready = ready ?? new MemoryReadyQueue({ clock: systemClock });
    const context: EngineContext = {
      db,
      ready: this.ready,
      bus: new LocalBus(),
      closeLinks: () => Promise.resolve(),
      mode,
      events: new TaskEvents(() => undefined),
      // What is discovered once is all that it hears from Postgres.
      settings: { ...defaultEngineSettings, discoverIntervalMs: hourMs },
      log: silentLog,
      random: Math.random,
      clock: null,
    };
    this.queues = new QueueDirectory(context, new Checkpoints(context));
    this.feeder = new Feeder(context, this.queues, new Places(this.ready));
    this.feeder.begin(() => undefined);
  }

  static async begin(db: Database, maxReady: number): Promise<Feeding> {
    await putQueue(db, 'q', { ...defaultQueueSettings, maxReady }, null);
    const feeding = new Feeding(db, { mode: 'memory' });
    await feeding.queues.load();
    await feeding.restore();
    return feeding;
  }

  async restore(): Promise<void> {
    await this.ready.beginRestore();
    const configuration = this.queues.configuration();
    await this.ready.restore({ generation: 1, ...configuration, levels: [], running: [] });
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
    const [room = -1] = await this.ready.room([{ lane, priority: 'medium' }]);
    return room;
  }
}

async function backlogOf(db: Database, count: number): Promise<TaskId[]> {
  const tasks = newTasks(count, { queue: 'q', taskType: 't', hasRoom: false });
  for (let from = 0; from < count; from += 1_000) {
    await submitTasks(db, tasks.slice(from, from + 1_000), null);
  }
  return tasks.map(({ taskId }) => taskId);
}

async function countQueued(db: Database): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    `select count(*)::int as n from sluice.tasks where status = 'queued'`,
  );
  return row?.n ?? 0;
}

describeOnEveryDatabase('the feeder', (db) => {
  it('R-RE6: what the ready queue still took for running is offered again a moment later', async () => {
    const feeding = await Feeding.begin(db(), 10);
    const taskIds = await backlogOf(db(), 3);
    await feeding.feed();
    const running = await feeding.take(3);
    await feeding.ready.confirm(running);
    // Another server ended these attempts, and has not told the ready queue yet.
    await returnToBacklog(db(), taskIds);
    feeding.feeder.noteBacklog({ lane, priority: 'medium' });
    await feeding.feed();
    expect(await countQueued(db())).toBe(3);
    expect(await feeding.take(3)).toEqual([]);
    await feeding.ready.finish(
      taskIds.map((taskId) => ({ taskId, queue: 'q', reserved: {}, usage: null })),
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
    const waiting = await backlogOf(db(), Math.min(maxReady * 5, 1_000));
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
      const tasks = Array.from({ length: windows }, (_, n) =>
        newTasks(1, { queue: 'q', taskType: `t${n}`, hasRoom: false }),
      ).flat();
      await submitTasks(db(), tasks, null);
      await feeding.feed();
      expect(await feeding.take(windows)).toHaveLength(windows);
      await feeding.ready.close();
    },
  );

  it('R-CH8: a window that is full costs Postgres nothing', async () => {
    const feeding = await Feeding.begin(db(), 10);
    await backlogOf(db(), 50);
    await feeding.feed();
    expect(await feeding.room()).toBe(0);
    const statements = vi.spyOn(db(), 'query');
    for (let n = 0; n < 5; n++) {
      feeding.feeder.noteTaken([{ lane, priority: 'medium' }]);
      await feeding.feed();
    }
    expect(statements).not.toHaveBeenCalled();
    statements.mockRestore();
    await feeding.ready.close();
  });

  it('R-CH8: what found its window full comes before anything younger', async () => {
    const feeding = await Feeding.begin(db(), 4);
    const waiting = await backlogOf(db(), 6);
    // Somebody takes the places between the feeder's look and its offer.
    const intruders = intruding(feeding.ready);
    await feeding.feed();
    expect(intruders.stop()).toBe(4);
    expect(await countQueued(db())).toBe(0);

    const first = await feeding.take(4);
    expect(first).toHaveLength(4);
    feeding.feeder.noteTaken(first);
    await feeding.feed();
    const second = await feeding.take(4);
    expect(second.map(({ taskId }) => taskId)).toEqual(waiting.slice(0, 4));
    await feeding.ready.close();
  });

  it('R-RE7: a ready queue without its contents is not fed: one batch waits for it', async () => {
    const feeding = await Feeding.begin(db(), 10);
    await feeding.ready.close();
    const waiting = await backlogOf(db(), 50);
    for (let n = 0; n < 5; n++) expect(await feeding.feeder.tick()).toBeGreaterThan(0);
    expect(await countQueued(db())).toBeLessThanOrEqual(10);
    await feeding.restore();
    await feeding.feed();
    const taken = await feeding.take(10);
    expect(taken.map(({ taskId }) => taskId)).toEqual(waiting.slice(0, 10));
    await feeding.ready.close();
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
      const waiting = await backlogOf(db, Math.min(maxReady * 20, 600));
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

  it('R-CH12: what the workers of another server empty is refilled soon', async () => {
    const { db } = postgres();
    const first = await Feeding.begin(db, 10);
    const feeding = await sharing(db, first);
    const waiting = await backlogOf(db, 100);
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

/** Fills the window just before the next offer. */
function intruding(ready: MemoryReadyQueue): { stop(): number } {
  const offer = ready.offer.bind(ready);
  const ids = new IdSource();
  let intruded = 0;
  ready.offer = async (offers) => {
    ready.offer = offer;
    const stale = Array.from({ length: 4 }, (_, seq) => ({
      taskId: ids.nextTaskId(Date.now()),
      lane,
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
