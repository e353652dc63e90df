import { afterEach, expect, it } from 'vitest';

import type { Lease, TaskId } from '../../src/domain/ids.js';
import { priorities } from '../../src/domain/priority.js';
import type { QueueLimit } from '../../src/domain/queue-settings.js';
import { Engine } from '../../src/engine/engine.js';
import { defaultEngineSettings, type EngineSettings } from '../../src/engine/settings.js';
import type { TaskEvent } from '../../src/protocol/events.js';
import type { TaskDraft } from '../../src/protocol/tasks-api.js';
import type { ClaimedTask, PollRequest } from '../../src/protocol/workers-api.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import { systemClock } from '../../src/runtime/clock.js';
import { DatabaseAwayError, type Database } from '../../src/store/database.js';
import { describeOnEveryDatabase } from '../store/support.js';
import { Gate } from '../support/gate.js';
import { until } from '../support/until.js';
import { contextOf } from './engine-parts.js';
import {
  disorder,
  drafts,
  indexOf,
  quickTicks,
  refusal,
  submitAll,
  TestWorker,
  untilWaiting,
} from './support.js';

const lane = { taskType: 't', queue: 'q' };
const longMs = 60_000;

/** What a test does to the next insert, which then goes its way. */
interface Insert {
  before?: () => Promise<void>;
  after?: () => Promise<void>;
}

interface Under {
  readonly engine: Engine;
  readonly ready: MemoryReadyQueue;
  readonly db: Database;
  /** What was asked of Postgres that has to do with tasks. */
  readonly statements: string[];
  readonly events: TaskEvent[];
  readonly insert: Insert;
}

describeOnEveryDatabase('a task that comes while a worker waits', (database) => {
  const engines: Engine[] = [];

  async function open(settings: Partial<EngineSettings> = {}): Promise<Under> {
    const statements: string[] = [];
    const insert: Insert = {};
    const db = seenThrough(database(), statements, insert);
    const ready = new MemoryReadyQueue({ clock: systemClock });
    // Nothing is repaired within the time of a test, unless it asks for it.
    const patient = { sweepIntervalMs: longMs, leaseMs: 20 * longMs };
    const context = {
      ...contextOf(db, ready),
      closeLinks: () => ready.close(),
      settings: { ...defaultEngineSettings, ...quickTicks, ...patient, ...settings },
    };
    const engine = new Engine(context, 'serve');
    const events: TaskEvent[] = [];
    engine.subscribe((event) => events.push(event));
    await engine.begin();
    engines.push(engine);
    return { engine, ready, db, statements, events, insert };
  }

  afterEach(async () => {
    await Promise.all(engines.splice(0).map((engine) => engine.close()));
  });

  it('R-ST1: is written once, as what its worker has', async () => {
    const { engine, statements, db } = await open();
    const { worker, polls } = await waiting(engine, 1);
    statements.splice(0);
    const receipt = await engine.submit({ ...lane, parameters: { index: 7 }, traceId: 'trace' });
    const [task] = await polls;
    expect(statements).toEqual(['insert']);
    expect(task).toMatchObject({
      taskId: receipt.taskId,
      attempt: 1,
      retryCount: 0,
      workflowId: null,
      traceId: 'trace',
      parameters: { index: 7 },
      effectivePriority: 'medium',
    });
    expect(receipt).toMatchObject({ status: 'queued', created: true, queuePosition: null });
    const [row] = await db.query(
      `select status, attempt, worker_id, lease, created_at = started_at as is_at_once,
         xmax::text::bigint = 0 as is_untouched from sluice.tasks`,
    );
    expect(row).toEqual({
      status: 'executing',
      attempt: 1,
      worker_id: worker.workerId,
      lease: task?.lease,
      is_at_once: true,
      is_untouched: true,
    });
  });

  it('R-ST3: its lease is good once, and no other is', async () => {
    const { engine, ready } = await open();
    const { worker, polls } = await waiting(engine, 1);
    await engine.submit(lane);
    const task = only(await polls);
    const another = { ...task, lease: crypto.randomUUID() as Lease };
    expect(await worker.complete(another)).toMatchObject({ accepted: false });
    expect(await worker.complete(task)).toMatchObject({ accepted: true });
    expect(await engine.getTask(task.taskId)).toMatchObject({ status: 'completed', attempt: 1 });
    expect(await slotsOf(ready)).toEqual({ entries: 0, running: 0 });
  });

  it('R-ST1: is told as one that was written and then claimed', async () => {
    const { engine, events } = await open();
    const later = await TestWorker.register(engine);
    await engine.submit({ ...lane, parameters: { index: 1 }, cost: { tokens: 3 } });
    const claimed = await later.takeOne();
    const { polls } = await waiting(engine, 1);
    await engine.submit({ ...lane, parameters: { index: 1 }, cost: { tokens: 3 } });
    const early = only(await polls);
    expect(anonymous(early)).toEqual(anonymous(claimed));
    const told = (taskId: TaskId) =>
      events
        .filter((event) => event.taskId === taskId)
        .map(({ at, waitMs, assignmentMs, workerId, taskId: _, ...rest }) => rest);
    expect(told(early.taskId)).toEqual(told(claimed.taskId));
    expect(told(early.taskId).map(({ from, to }) => [from, to])).toEqual([
      ['new', 'queued'],
      ['queued', 'executing'],
    ]);
  });

  it('R-CH1: a batch is written in order, whatever of it is waited for', async () => {
    const { engine, db } = await open();
    const { worker, polls } = await waiting(engine, 3);
    await submitAll(engine, drafts(2_500, lane));
    const rows = await db.query<{ index: number }>(
      `select (parameters ->> 'index')::int as index
       from sluice.tasks join sluice.task_inputs on task_id = id order by seq`,
    );
    expect(rows.findIndex(({ index }, n) => index !== n)).toBe(-1);
    const tasks = [...(await polls), ...(await worker.take(500))];
    expect(disorder(tasks, 503)).toBe('none');
  });

  it('R-CH1: who comes in between takes none before those that are ahead of it', async () => {
    const { engine } = await open();
    const { polls } = await waiting(engine, 1, { queues: ['q'] });
    const late = await TestWorker.register(engine);
    // One is waited for. Between its fellows stands another lane.
    const other = { taskType: 'other', queue: 'elsewhere' };
    const batch = [lane, lane, other, lane].map((one, index) => ({
      ...one,
      parameters: { index },
    }));
    const submitted = engine.submitMany(batch);
    const taken = late.look(2, { waitMs: longMs, queues: ['q'] });
    await submitted;
    expect((await polls).map(indexOf)).toEqual([0]);
    expect((await taken).map(indexOf)[0]).toBe(1);
  });

  it('R-CH1: who comes in between takes none before one of its queue that nobody waited for', async () => {
    const { engine } = await open();
    const { polls } = await waiting(engine, 1, {}, { taskTypes: ['second', 'third'] });
    const late = await TestWorker.register(engine);
    const types = ['first', 'second', 'third'];
    const submitted = engine.submitMany(types.map((taskType) => ({ taskType, queue: 'q' })));
    const taken = late.look(1, { waitMs: longMs });
    await submitted;
    const got = [...(await taken), ...(await polls)].map(({ taskType }) => taskType);
    expect(got).toEqual(['first', 'second']);
  });

  it('R-CH1: who comes in between takes nothing less urgent than what is to be written', async () => {
    const { engine } = await open();
    const { polls } = await waiting(engine, 1);
    const late = await TestWorker.register(engine);
    const submitted = engine.submitMany([
      { ...lane, priority: 'low' },
      { ...lane, priority: 'high' },
      { ...lane, priority: 'high' },
    ]);
    const taken = late.look(1, { waitMs: longMs });
    await submitted;
    const tasks = [...(await polls), ...(await taken)];
    expect(tasks.map(({ priority }) => priority)).toEqual(['high', 'high']);
  });

  it('R-CH1: of a batch the most urgent one goes to who waits', async () => {
    const { engine } = await open();
    const { polls } = await waiting(engine, 1);
    const order = ['low', 'medium', 'high', 'low'] as const;
    await engine.submitMany(order.map((priority) => ({ ...lane, priority })));
    expect((await polls).map(({ priority }) => priority)).toEqual(['high']);
  });

  it('R-CH1: one who starts at once does not overtake one who prefetches', async () => {
    const { engine, statements, events } = await open();
    const first = await waiting(engine, 1, { prefetch: true });
    const second = await waiting(engine, 1);
    statements.splice(0);
    const ids = await submitAll(engine, drafts(2, lane));
    const [prefetched, started] = [only(await first.polls), only(await second.polls)];
    expect([prefetched, started].map(idOf)).toEqual(ids);
    expect(statements).toEqual(['insert']);
    const claims = events.filter(({ from }) => from === 'queued');
    expect(claims.map(({ taskId, to }) => [taskId, to])).toEqual([
      [prefetched.taskId, 'assigned'],
      [started.taskId, 'executing'],
    ]);
    const { unstartedMs } = defaultEngineSettings;
    expect(+started.deadline - +prefetched.deadline).toBe(600_000 - unstartedMs);
    await engine.start(first.worker.workerId, prefetched);
    expect(await first.worker.complete(prefetched)).toMatchObject({ accepted: true });
  });

  it('R-CH3: everybody gets what they can do, and nothing else', async () => {
    const { engine } = await open();
    const able = (registration: Parameters<typeof waiting>[3]) =>
      waiting(engine, 5, {}, registration);
    const gpu = await able({ taskTypes: ['t'], capabilities: ['gpu'] });
    const other = await able({ taskTypes: ['other'] });
    const elsewhere = await able({ queues: ['elsewhere'] });
    const batch: TaskDraft[] = [
      { ...lane, requiredCapabilities: ['gpu'] },
      { taskType: 'other', queue: 'q' },
      { taskType: 'any', queue: 'elsewhere' },
      { taskType: 'nobody', queue: 'q' },
    ];
    const ids = await submitAll(engine, batch);
    const got = [await gpu.polls, await other.polls, await elsewhere.polls];
    expect(got.map((tasks) => tasks.map(idOf))).toEqual(ids.slice(0, 3).map((id) => [id]));
    const { items } = await engine.listTasks({ taskType: 'nobody' });
    expect(items.map(({ status }) => status)).toEqual(['queued']);
  });

  it('R-CH6: runs beside no more than may run, however many wait', async () => {
    const { engine, ready, events } = await open();
    await engine.putQueue('q', { maxConcurrency: 2 });
    const workers = await Promise.all(Array.from({ length: 8 }, () => TestWorker.register(engine)));
    const running = workers.map(async (worker) => {
      for (;;) {
        const tasks = await worker.look(3, { waitMs: 500 });
        if (tasks.length > 0) await worker.completeAll(tasks);
        else if (events.filter(({ to }) => to === 'completed').length === 60) return;
      }
    });
    for (let n = 0; n < 20; n += 1) await submitAll(engine, drafts(3, lane));
    await Promise.all(running);
    expect(mostAtOnce(events)).toBe(2);
    expect(await slotsOf(ready)).toEqual({ entries: 0, running: 0 });
  });

  it('R-CH5: pays for what it costs, and what is not written is paid back', async () => {
    const { engine, ready, insert } = await open();
    const limits: QueueLimit[] = [{ unit: 'tokens', rate: 10, perSeconds: 3_600, burst: 10 }];
    await engine.putQueue('q', { limits });
    const left = async () => Math.floor((await ready.live('q')).buckets[0]?.tokens ?? NaN);
    const { polls } = await waiting(engine, 5);
    insert.before = () => Promise.reject(new DatabaseAwayError('away'));
    expect(await refusal(engine.submit({ ...lane, cost: { tokens: 4 } }))).toBe('unavailable');
    expect(await left()).toBe(10);
    await submitAll(engine, Array(4).fill({ ...lane, cost: { tokens: 4 } }) as TaskDraft[]);
    expect(await polls).toHaveLength(2);
    expect(await left()).toBe(2);
    expect(await slotsOf(ready)).toEqual({ entries: 4, running: 2 });
  });

  it('R-CH7: waits while its queue is paused, behind those that wait there', async () => {
    const { engine, db } = await open();
    await engine.putQueue('q', { paused: true, maxReady: 2 });
    await submitAll(engine, drafts(4, lane));
    const { worker, polls } = await waiting(engine, 1);
    await submitAll(engine, [{ ...lane, parameters: { index: 4 } }]);
    expect(await db.query(`select from sluice.tasks where status <> 'queued'`)).toEqual([]);
    await engine.putQueue('q', { paused: false });
    const tasks = [...(await polls), ...(await worker.take(4))];
    expect(disorder(tasks, 5)).toBe('none');
  });

  it('R-CH8: the line of a window of one is as it was', async () => {
    const { engine, ready } = await open();
    await engine.putQueue('q', { maxReady: 1 });
    const { worker, polls } = await waiting(engine, 3);
    await submitAll(engine, drafts(20, lane));
    const first = await polls;
    const tasks = [...first, ...(await worker.take(20 - first.length))];
    expect(disorder(tasks, 20)).toBe('none');
    await until('nothing to be left in line', async () => (await ready.listBehind()).length === 0);
  });

  it('R-AD1: where a ceiling refuses, nobody holds a slot of what was refused', async () => {
    const { engine, ready } = await open();
    await engine.putQueue('q', { maxActive: 2, maxConcurrency: 5 });
    const { polls } = await waiting(engine, 5);
    const batch = Array.from({ length: 5 }, () => ({ ...lane, priority: 'high' }) as const);
    const outcomes = await engine.submitMany(batch);
    expect(outcomes.filter(({ kind }) => kind === 'refused')).toHaveLength(3);
    const tasks = await polls;
    expect(tasks).toHaveLength(2);
    expect(await slotsOf(ready)).toEqual({ entries: 2, running: 2 });
  });

  it('R-AD7: a bad one fails its own caller, and those beside it run once each', async () => {
    const { engine, ready, events } = await open();
    await engine.putQueue('q', { maxConcurrency: 20 });
    const { worker, polls } = await waiting(engine, 20);
    const calls = Array.from({ length: 12 }, (_, index) =>
      engine.submit({
        ...lane,
        parameters: { index },
        ...(index === 5 && { userId: 'nul \u0000 is no text' }),
      }),
    );
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([5]);
    const first = await polls;
    const tasks = [...first, ...(await worker.take(11 - first.length))];
    expect(tasks.map(indexOf).sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]);
    expect(await slotsOf(ready)).toEqual({ entries: 11, running: 11 });
    expect(events).toHaveLength(22);
  });

  it('R-RE8: Postgres away before it is written: the slot is free, and the poll waits on', async () => {
    const { engine, ready, insert } = await open();
    await engine.putQueue('q', { maxConcurrency: 1 });
    const { polls } = await waiting(engine, 1);
    insert.before = () => Promise.reject(new DatabaseAwayError('away'));
    expect(await refusal(engine.submit(lane))).toBe('unavailable');
    expect(await slotsOf(ready)).toEqual({ entries: 0, running: 0 });
    const { taskId } = await engine.submit(lane);
    expect((await polls).map(idOf)).toEqual([taskId]);
  });

  it('R-RE8: written, and nobody heard of it: after two heartbeats it is anybody’s', async () => {
    const { engine, ready, insert, db } = await open({ heartbeatIntervalMs: 50 });
    const { worker, polls } = await waiting(engine, 1);
    insert.after = () => Promise.reject(new DatabaseAwayError('away'));
    expect(await refusal(engine.submit(lane))).toBe('unavailable');
    const [row] = await db.query<{ id: TaskId; status: string }>('select * from sluice.tasks');
    expect(row).toMatchObject({ status: 'executing', worker_id: worker.workerId });
    const other = await TestWorker.register(engine);
    expect(await other.look(1)).toEqual([]);
    let isBack = false;
    void polls.then(() => (isBack = true));
    await until('it to come back', async () => {
      await worker.beat([]);
      return isBack;
    });
    const task = only(await polls);
    expect(task).toMatchObject({ taskId: row?.id, attempt: 2, retryCount: 0 });
    expect(await worker.complete(task)).toMatchObject({ accepted: true });
    expect(await slotsOf(ready)).toEqual({ entries: 0, running: 0 });
  });

  it('R-RE7: the ready queue filled anew before it is written: it waits in line', async () => {
    const { engine, ready, insert, statements } = await open();
    await engine.putQueue('q', { maxConcurrency: 1 });
    const { polls } = await waiting(engine, 1);
    insert.before = async () => {
      await ready.beginRestore();
      const scout = await TestWorker.register(engine, { queues: ['elsewhere'] });
      await until('it to be filled', async () => {
        await scout.look(1);
        return statements.includes('generation') && (await isOpen(ready));
      });
    };
    const { taskId } = await engine.submit(lane);
    expect((await polls).map(idOf)).toEqual([taskId]);
    expect(statements.filter((kind) => kind !== 'generation')).toEqual(['insert', 'claim']);
    expect(await slotsOf(ready)).toEqual({ entries: 1, running: 1 });
  });

  it('R-RE1: its client gone while it is written: it goes back at once', async () => {
    const { engine, ready, insert } = await open();
    const leaving = new AbortController();
    const { polls } = await waiting(engine, 1, {}, {}, leaving.signal);
    insert.before = async () => leaving.abort();
    const { taskId } = await engine.submit(lane);
    expect(await polls).toEqual([]);
    const other = await TestWorker.register(engine);
    const task = await other.takeOne();
    expect(task).toMatchObject({ taskId, attempt: 2, retryCount: 0 });
    expect(await slotsOf(ready)).toEqual({ entries: 1, running: 1 });
  });

  it('R-WO8: its worker told to drain while it is written: it has it, and the word', async () => {
    const { engine, insert } = await open();
    const worker = await TestWorker.register(engine);
    const request = { availableCapacity: 1, waitMs: longMs };
    const { polls } = await untilWaiting(() => engine.poll(worker.workerId, request));
    insert.before = async () => {
      await engine.drainWorker(worker.workerId);
    };
    const { taskId } = await engine.submit(lane);
    const { tasks, drain } = await polls;
    expect([tasks.map(idOf), drain]).toEqual([[taskId], true]);
    expect(await worker.complete(only(tasks))).toMatchObject({ accepted: true });
  });

  it('R-WO8: closing while it is written ends both calls', async () => {
    const { engine, insert } = await open();
    const { polls } = await waiting(engine, 1);
    const [isTaken, goesOn] = [new Gate(), new Gate()];
    insert.before = () => {
      isTaken.open();
      return goesOn.passed;
    };
    const submitted = engine.submit(lane);
    await isTaken.passed;
    const closed = engine.close();
    goesOn.open();
    const { taskId } = await submitted;
    expect((await polls).map(idOf)).toEqual([taskId]);
    await closed;
  });

  it('R-ST4: with keys, workflows and delays beside it, all of them run', async () => {
    const { engine } = await open();
    const { worker, polls } = await waiting(engine, 10);
    const ids = await submitAll(engine, [
      lane,
      { ...lane, idempotencyKey: 'key' },
      { ...lane, workflowId: 'w' },
      { ...lane, workflowId: 'w' },
      { ...lane, delaySeconds: 0.05 },
      lane,
    ]);
    const done = [];
    for (let tasks = await polls; done.length < ids.length; tasks = await worker.look(9, soon)) {
      done.push(...tasks.map(idOf));
      await worker.completeAll(tasks);
    }
    expect(done.toSorted()).toEqual(ids.toSorted());
  });

  it('R-RE8: in a crowd, each runs once and nothing is kept of it', async () => {
    const { engine, ready, events, insert } = await open();
    await engine.putQueue('narrow', { maxConcurrency: 3, maxReady: 2 });
    const workers = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        TestWorker.register(engine, n % 4 === 0 ? { queues: ['narrow'] } : {}),
      ),
    );
    const ids: TaskId[] = [];
    const done: TaskId[] = [];
    let isOver = false;
    const running = workers.map(async (worker, n) => {
      for (let round = n; !isOver || done.length < ids.length; round += 1) {
        const leaving = new AbortController();
        if (round % 7 === 0) setImmediate(() => leaving.abort());
        const poll = { availableCapacity: 1 + (round % 3), waitMs: 200, prefetch: round % 5 === 0 };
        const { tasks } = await engine.poll(worker.workerId, poll, leaving.signal);
        if (poll.prefetch) {
          for (const task of tasks) await engine.start(worker.workerId, task);
        }
        const answers = await worker.completeAll(tasks);
        done.push(...tasks.filter((_, index) => answers[index]?.accepted).map(idOf));
      }
    });
    for (let n = 0; n < 60; n += 1) {
      if (n % 10 === 9) insert.before = () => Promise.reject(new DatabaseAwayError('away'));
      const priority = priorities[n % 3] ?? 'high';
      const queue = n % 2 === 0 ? 'narrow' : 'wide';
      const batch = drafts(1 + (n % 9), { taskType: 't', queue, priority });
      const outcomes = await engine.submitMany(batch).catch(() => []);
      for (const one of outcomes) if (one.kind === 'accepted') ids.push(one.receipt.taskId);
    }
    isOver = true;
    await Promise.all(running);
    expect(done.toSorted()).toEqual(ids.toSorted());
    expect(mostAtOnce(events.filter(({ queue }) => queue === 'narrow'))).toBeLessThanOrEqual(3);
    // What is left in the narrow line may be fed and claimed before its submit has heard of the commit.
    expect(outOfOrder(events.filter(({ queue }) => queue === 'wide'))).toEqual([]);
    expect(ready.sizes.entries).toBe(0);
  });

  const soon: Partial<PollRequest> = { waitMs: 1_000 };

  /** A worker with a poll that waits. */
  async function waiting(
    engine: Engine,
    count: number,
    request: Partial<PollRequest> = {},
    registration: Parameters<typeof TestWorker.register>[1] = {},
    signal?: AbortSignal,
  ): Promise<{ worker: TestWorker; polls: Promise<readonly ClaimedTask[]> }> {
    const worker = await TestWorker.register(engine, registration);
    const poll = { availableCapacity: count, waitMs: longMs, ...request };
    const begin = () => engine.poll(worker.workerId, poll, signal).then(({ tasks }) => tasks);
    return { worker, ...(await untilWaiting(begin)) };
  }
});

/** Statements that a task may cost, by what is in none but them. */
const kinds = [
  ['insert into sluice.tasks ', 'insert'],
  ['claim.start', 'claim'],
  ['begin_generation', 'generation'],
] as const;

/** The same database, with a look at what is asked of it; it outlives the engine. */
function seenThrough(db: Database, statements: string[], insert: Insert): Database {
  const note = (text: string): void => {
    const kind = kinds.find(([part]) => text.includes(part))?.[1];
    if (kind !== undefined) statements.push(kind);
  };
  const query: Database['query'] = (text, parameters) => {
    note(text);
    return db.query(text, parameters);
  };
  const insertWith = async <Row>(
    { before, after }: Insert,
    text: string,
    parameters?: readonly unknown[],
  ): Promise<Row[]> => {
    await before?.();
    const rows = await db.ordered.query<Row>(text, parameters);
    await after?.();
    return rows;
  };
  const ordered: Database['ordered'] = {
    query: (text, parameters) => {
      note(text);
      const { before, after } = insert;
      delete insert.before;
      delete insert.after;
      if (before === undefined && after === undefined) return db.ordered.query(text, parameters);
      return insertWith({ before, after } as Insert, text, parameters);
    },
  };
  return { ...db, query, ordered, close: () => Promise.resolve() };
}

function only(tasks: readonly ClaimedTask[]): ClaimedTask {
  const [task, ...others] = tasks;
  if (task === undefined || others.length > 0) throw new Error(`${tasks.length} instead of one`);
  return task;
}

function idOf({ taskId }: Pick<ClaimedTask, 'taskId'>): TaskId {
  return taskId;
}

/** What two equal tasks need not share. */
function anonymous({
  taskId,
  lease,
  deadline,
  traceId,
  waitedSeconds,
  ...rest
}: ClaimedTask): unknown {
  return rest;
}

async function slotsOf(ready: MemoryReadyQueue, queue = 'q'): Promise<unknown> {
  const { running } = await ready.live(queue);
  return { entries: ready.sizes.entries, running };
}

async function isOpen(ready: MemoryReadyQueue): Promise<boolean> {
  return (await ready.offer([])).kind === 'offered';
}

/** Of those that were claimed and have not ended. */
function mostAtOnce(events: readonly TaskEvent[]): number {
  let [running, most] = [0, 0];
  for (const { from, to } of events) {
    if (from === 'queued') running += 1;
    else if (to !== 'executing' && from !== 'new' && from !== 'pending') running -= 1;
    most = Math.max(most, running);
  }
  return most;
}

/** Tasks whose claim was told before they were. */
function outOfOrder(events: readonly TaskEvent[]): TaskId[] {
  const told = new Set<TaskId>();
  return events.flatMap(({ taskId, from }) => {
    if (from === 'new') told.add(taskId);
    return told.has(taskId) ? [] : [taskId];
  });
}
