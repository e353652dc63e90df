import { expect, it } from 'vitest';

import type { TaskId } from '../../src/domain/ids.js';
import type { Engine } from '../../src/engine/open-engine.js';
import type { QueueLimit } from '../../src/domain/queue-settings.js';
import { waitReasonKinds, type WaitReason } from '../../src/protocol/tasks-api.js';
import {
  describeOnEveryEngine,
  drafts,
  freshQueue,
  refusal,
  submitAll,
  TestWorker,
} from './support.js';

const requests = { unit: 'requests', rate: 60, perSeconds: 60, burst: 2 };
const tokens = { unit: 'tokens', rate: 1_000, perSeconds: 1, burst: 1_000 };

interface Situation {
  readonly taskId: TaskId;
  readonly detail: string;
  readonly until?: Date;
  readonly position: number | null;
  readonly waitSeconds: number | null;
}

describeOnEveryEngine('explaining why a task waits', (under) => {
  const kinds = async (taskId: TaskId) =>
    (await under().engine.explainTask(taskId)).reasons.map(({ kind }) => kind);

  async function limited(engine: Engine, limits: readonly QueueLimit[]): Promise<string> {
    const queue = freshQueue();
    await engine.putQueue(queue, { limits });
    return queue;
  }

  async function reasonOf(taskId: TaskId, wanted: WaitReason['kind']): Promise<WaitReason> {
    const { reasons } = await under().engine.explainTask(taskId);
    const reason = reasons.find(({ kind }) => kind === wanted);
    if (reason === undefined) throw new Error(`no ${wanted} in ${JSON.stringify(reasons)}`);
    return reason;
  }

  /** Makes each kind real, and says what is to be answered for the task that waits. */
  const situations: Record<WaitReason['kind'], () => Promise<Situation>> = {
    scheduled: async () => {
      const { engine, clock } = under();
      const queue = freshQueue();
      await TestWorker.register(engine, { queues: [queue] });
      const { taskId } = await engine.submit({ taskType: 'chat', queue, delaySeconds: 90 });
      const until = new Date(clock.nowMs() + 90_000);
      return { taskId, detail: 'It is not due yet.', until, position: null, waitSeconds: 90 };
    },
    workflow: async () => {
      const { engine } = under();
      const queue = freshQueue();
      await TestWorker.register(engine, { queues: [queue] });
      const workflowId = queue;
      await engine.submit({ taskType: 'chat', queue, workflowId });
      const { taskId } = await engine.submit({ taskType: 'chat', queue, workflowId });
      const detail = `An earlier task of workflow ${workflowId} has not ended well yet.`;
      return { taskId, detail, position: null, waitSeconds: null };
    },
    no_room: async () => {
      const { engine } = under();
      const queue = freshQueue();
      await engine.putQueue(queue, { maxReady: 1 });
      await TestWorker.register(engine, { queues: [queue] });
      for (let n = 0; n < 3; n += 1) await engine.submit({ taskType: 'chat', queue });
      const { taskId } = await engine.submit({ taskType: 'chat', queue });
      const detail =
        'It is in line behind all that is ready of its kind, and comes in when those are taken.';
      return { taskId, detail, position: 3, waitSeconds: null };
    },
    rate_limit: async () => {
      const { engine, clock } = under();
      const queue = await limited(engine, [requests]);
      const worker = await TestWorker.register(engine, { queues: [queue] });
      for (let n = 0; n < 2; n += 1) await engine.submit({ taskType: 'chat', queue });
      await worker.take(2);
      const { taskId } = await engine.submit({ taskType: 'chat', queue });
      const detail = `It costs one request; 0 are left of the 60 requests a minute (bursts of 2) of queue ${queue}.`;
      return {
        taskId,
        detail,
        until: new Date(clock.nowMs() + 1_000),
        position: 0,
        waitSeconds: 1,
      };
    },
    max_concurrency: async () => {
      const { engine, clock } = under();
      const queue = freshQueue();
      await engine.putQueue(queue, { maxConcurrency: 1 });
      const worker = await TestWorker.register(engine, { queues: [queue] });
      for (let n = 0; n < 2; n += 1) await engine.submit({ taskType: 'chat', queue });
      const first = await worker.takeOne();
      clock.advance(2_000);
      await worker.complete(first);
      await worker.take(1);
      const { taskId } = await engine.submit({ taskType: 'chat', queue });
      const detail = `Queue ${queue} runs 1 tasks; 1 is its most.`;
      // One that takes 2 s on the average has to end.
      return { taskId, detail, position: 0, waitSeconds: 2 };
    },
    paused: async () => {
      const { engine, clock } = under();
      const queue = freshQueue();
      await TestWorker.register(engine, { queues: [queue] });
      const until = new Date(clock.nowMs() + 60_000);
      await engine.pauseQueue(queue, until);
      const { taskId } = await engine.submit({ taskType: 'chat', queue });
      return { taskId, detail: `Queue ${queue} is paused.`, until, position: 0, waitSeconds: 60 };
    },
    circuit_open: async () => {
      const { engine, clock } = under();
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue] });
      await engine.submit({ taskType: 'chat', queue });
      const denied = { code: 'UNAUTHORIZED', message: 'bad key', retriable: false };
      await worker.fail(await worker.takeOne(), denied);
      const { taskId } = await engine.submit({ taskType: 'chat', queue });
      const until = new Date(clock.nowMs() + 30_000);
      const detail = `The circuit of queue ${queue} is open: its service refuses the API key (401).`;
      return { taskId, detail, until, position: 0, waitSeconds: 30 };
    },
    no_worker: async () => {
      const { engine } = under();
      // Its tokens are there, so that only the worker is missing.
      const queue = await limited(engine, [requests]);
      await TestWorker.register(engine, { queues: [queue], taskTypes: ['chat'] });
      const requiredCapabilities = ['gpu'];
      const { taskId } = await engine.submit({ taskType: 'draw', queue, requiredCapabilities });
      const detail = 'No active worker offers: task type draw, gpu.';
      return { taskId, detail, position: 0, waitSeconds: null };
    },
    workers_busy: async () => {
      const { engine } = under();
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue], capacity: 1 });
      await engine.submit({ taskType: 'chat', queue });
      await worker.beat([await worker.takeOne()]);
      const { taskId } = await engine.submit({ taskType: 'chat', queue });
      const detail = 'All 1 workers that could do it are full.';
      // No task has ended yet: nobody can say when one will.
      return { taskId, detail, position: 0, waitSeconds: null };
    },
    behind: async () => {
      const { engine } = under();
      const queue = await limited(engine, [requests]);
      await TestWorker.register(engine, { queues: [queue] });
      for (let n = 0; n < 4; n += 1) await engine.submit({ taskType: 'chat', queue });
      const { taskId } = await engine.submit({ taskType: 'chat', queue });
      // Two may start at once, the others one in a second.
      const detail = `4 tasks of queue ${queue} come before it.`;
      return { taskId, detail, position: 4, waitSeconds: 3 };
    },
  };

  it.each(waitReasonKinds)('R-OB5: %s, with its detail, position and estimate', async (kind) => {
    const { engine, clock } = under();
    const { taskId, detail, until, position, waitSeconds } = await situations[kind]();
    const reason = await reasonOf(taskId, kind);
    expect(reason).toEqual({ kind, detail, ...(until === undefined ? {} : { until }) });
    const nowMs = clock.nowMs();
    expect(await engine.explainTask(taskId)).toMatchObject({
      queuePosition: position,
      estimatedWaitSeconds: waitSeconds,
      estimatedStartTime: waitSeconds === null ? null : new Date(nowMs + waitSeconds * 1000),
    });
  });

  it('R-OB5: nothing holds up a task whose tokens are there', async () => {
    const { engine, clock } = under();
    const queue = await limited(engine, [requests]);
    await TestWorker.register(engine, { queues: [queue] });
    const { taskId } = await engine.submit({ taskType: 'chat', queue });
    expect(await engine.explainTask(taskId)).toEqual({
      taskId,
      status: 'queued',
      reasons: [],
      queuePosition: 0,
      estimatedWaitSeconds: 0,
      estimatedStartTime: new Date(clock.nowMs()),
    });
  });

  it('R-OB5, R-CH4: names the limit, what is left, and exactly until when', async () => {
    const { engine, clock } = under();
    const queue = await limited(engine, [requests]);
    const worker = await TestWorker.register(engine, { queues: [queue] });
    for (let n = 0; n < 2; n += 1) await engine.submit({ taskType: 'chat', queue });
    await worker.take(2);
    const { taskId } = await engine.submit({ taskType: 'chat', queue });
    const beganMs = clock.nowMs();
    expect(await reasonOf(taskId, 'rate_limit')).toEqual({
      kind: 'rate_limit',
      detail: `It costs one request; 0 are left of the 60 requests a minute (bursts of 2) of queue ${queue}.`,
      until: new Date(beganMs + 1_000),
    });
    clock.advance(250);
    expect((await reasonOf(taskId, 'rate_limit')).detail).toContain('0.25 are left');
    clock.advance(749);
    expect(await worker.look(1)).toEqual([]);
    clock.advance(1);
    expect(await kinds(taskId)).toEqual([]);
    expect(await worker.look(1)).toMatchObject([{ taskId }]);
  });

  it('R-OB5, R-CH5: by its own cost, with shared limits named, and debts', async () => {
    const { engine, clock } = under();
    const shared = freshQueue();
    await engine.putLimit(shared, { ...tokens, burst: 100 });
    const queue = await limited(engine, [tokens, { use: shared }]);
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await engine.submit({ taskType: 'chat', queue, cost: { tokens: 60 } });
    const running = await worker.takeOne();
    const dear = await engine.submit({ taskType: 'chat', queue, cost: { tokens: 50 } });
    expect(await reasonOf(dear.taskId, 'rate_limit')).toEqual({
      kind: 'rate_limit',
      detail: `It costs 50 tokens; 40 are left of the 1,000 tokens a second (bursts of 100) of the shared limit ${shared}.`,
      until: new Date(clock.nowMs() + 10),
    });
    const { taskId, lease } = running;
    await worker.report({ taskId, lease, status: 'completed', usage: { tokens: 1_300 } });
    const { reasons } = await engine.explainTask(dear.taskId);
    expect(reasons.map(({ detail }) => /; (.*?) of the/.exec(detail)?.[1])).toEqual([
      '300 are owed',
      '1,200 are owed',
    ]);
    expect(reasons[1]?.until).toEqual(new Date(clock.nowMs() + 1_250));
  });

  it('R-OB5: a cost beyond what a limit holds goes when it is full', async () => {
    const { engine, clock } = under();
    const queue = await limited(engine, [tokens]);
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await engine.submit({ taskType: 'chat', queue, cost: { tokens: 1 } });
    await worker.take(1);
    const { taskId } = await engine.submit({ taskType: 'chat', queue, cost: { tokens: 5_000 } });
    const { detail, until } = await reasonOf(taskId, 'rate_limit');
    expect(detail).toContain('It costs 5,000 tokens, and goes when the limit is full with 1,000;');
    expect(until).toEqual(new Date(clock.nowMs() + 1));
  });

  it('R-OB5: a task behind one that is short is told of that one', async () => {
    const { engine, clock } = under();
    const queue = await limited(engine, [tokens]);
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await engine.submit({ taskType: 'chat', queue, cost: { tokens: 900 } });
    await worker.take(1);
    const dear = await engine.submit({ taskType: 'chat', queue, cost: { tokens: 700 } });
    const cheap = await engine.submit({ taskType: 'other', queue, cost: { tokens: 1 } });
    expect(await worker.look(2)).toEqual([]);
    expect(await kinds(dear.taskId)).toEqual(['rate_limit']);
    expect(await kinds(cheap.taskId)).toEqual(['rate_limit', 'behind']);
    const { detail, until } = await reasonOf(cheap.taskId, 'rate_limit');
    expect(detail).toContain(
      `Task ${dear.taskId} comes before it, is not overtaken, and costs 700`,
    );
    expect(until).toEqual(new Date(clock.nowMs() + 600));
    clock.advance(600);
    expect(await kinds(cheap.taskId)).toEqual(['behind']);
    expect(await worker.look(1)).toMatchObject([{ taskId: dear.taskId }]);
  });

  it('R-OB5: what nobody can do holds up nothing, and is not named', async () => {
    const { engine } = under();
    const queue = await limited(engine, [tokens]);
    const worker = await TestWorker.register(engine, { queues: [queue], taskTypes: ['chat'] });
    await engine.submit({ taskType: 'chat', queue, cost: { tokens: 900 } });
    await worker.take(1);
    await engine.submit({ taskType: 'nobody', queue, cost: { tokens: 700 } });
    const { taskId } = await engine.submit({ taskType: 'chat', queue, cost: { tokens: 1 } });
    expect(await kinds(taskId)).toEqual(['behind']);
    expect(await worker.look(1)).toMatchObject([{ taskId }]);
  });

  it('R-OB5, R-CH6: the most that may run at once', async () => {
    const { engine } = under();
    const queue = freshQueue();
    await engine.putQueue(queue, { maxConcurrency: 1 });
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await engine.submit({ taskType: 'chat', queue });
    await worker.take(1);
    const { taskId } = await engine.submit({ taskType: 'chat', queue });
    expect(await reasonOf(taskId, 'max_concurrency')).toEqual({
      kind: 'max_concurrency',
      detail: `Queue ${queue} runs 1 tasks; 1 is its most.`,
    });
  });

  it('R-OB5, R-CH8: in line behind all that is ready', async () => {
    const { engine } = under();
    const queue = freshQueue();
    await engine.putQueue(queue, { maxReady: 1 });
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const [ready, inLine] = [
      await engine.submit({ taskType: 'chat', queue }),
      await engine.submit({ taskType: 'chat', queue }),
    ];
    expect(await kinds(ready.taskId)).toEqual([]);
    expect((await reasonOf(inLine.taskId, 'no_room')).detail).toBe(
      'It is in line behind all that is ready of its kind, and comes in when those are taken.',
    );
    expect(await worker.take(1)).toMatchObject([{ taskId: ready.taskId }]);
    expect(await worker.take(1)).toMatchObject([{ taskId: inLine.taskId }]);
  });

  it('R-OB5, R-CH7: a pause, until its end', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const until = new Date(clock.nowMs() + 60_000);
    await engine.pauseQueue(queue, until);
    await TestWorker.register(engine, { queues: [queue] });
    const { taskId } = await engine.submit({ taskType: 'chat', queue });
    expect(await reasonOf(taskId, 'paused')).toMatchObject({ until });
    clock.advance(60_000);
    expect(await kinds(taskId)).toEqual([]);
    expect((await engine.getQueue(queue)).settings.paused).toBe(false);
  });

  it('R-OB5: the limits of now say nothing of a task that is not due', async () => {
    const { engine } = under();
    const queue = await limited(engine, [requests]);
    const worker = await TestWorker.register(engine, { queues: [queue] });
    for (let n = 0; n < 2; n += 1) await engine.submit({ taskType: 'chat', queue });
    await worker.take(2);
    const { taskId } = await engine.submit({ taskType: 'chat', queue, delaySeconds: 60 });
    expect(await kinds(taskId)).toEqual(['scheduled']);
  });

  it('R-CH5: a unit that no limit counts is noted; a shared limit counts too', async () => {
    const { engine } = under();
    const shared = freshQueue();
    await engine.putLimit(shared, tokens);
    const queue = await limited(engine, [requests, { use: shared }]);
    const cost = { tokens: 1, tokenz: 2_000 };
    const { taskId } = await engine.submit({ taskType: 'chat', queue, cost });
    const { notes } = await engine.explainTask(taskId);
    expect(notes).toEqual([`It costs 2,000 tokenz, but no limit of queue ${queue} counts tokenz.`]);
  });

  it('R-OB5: the estimate goes by the limits, the pause and the slots', async () => {
    const { engine, clock } = under();
    const queue = await limited(engine, [tokens]);
    const submit = (cost: number) =>
      engine.submit({ taskType: 'chat', queue, cost: { tokens: cost } });
    expect(await submit(500)).toMatchObject({ queuePosition: 0, estimatedWaitSeconds: 0 });
    expect(await submit(500)).toMatchObject({ queuePosition: 1, estimatedWaitSeconds: 0 });
    expect(await submit(500)).toMatchObject({ queuePosition: 2, estimatedWaitSeconds: 0.5 });
    await engine.pauseQueue(queue, new Date(clock.nowMs() + 30_000));
    expect(await submit(500)).toMatchObject({ estimatedWaitSeconds: 30 });
    await engine.pauseQueue(queue);
    expect(await submit(500)).toMatchObject({ estimatedWaitSeconds: null });
    await engine.putQueue(queue, { maxConcurrency: 2 });
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const first = await worker.take(2);
    clock.advance(4_000);
    await worker.completeAll(first);
    await worker.take(2);
    // 1 waits, 2 run for 4 s on the average, and it is the second to come after them.
    expect(await submit(500)).toMatchObject({ queuePosition: 1, estimatedWaitSeconds: 4 });
  });

  it('R-OB5: while all workers are full, the estimate goes by how many were started in the last minute', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue], capacity: 1 });
    await submitAll(engine, drafts(3, { taskType: 'chat', queue }));
    await worker.complete(await worker.takeOne());
    await worker.beat([await worker.takeOne()]);
    const { taskId } = await engine.submit({ taskType: 'chat', queue });
    expect(await reasonOf(taskId, 'workers_busy')).toMatchObject({
      detail: 'All 1 workers that could do it are full.',
    });
    // Two a minute, and one comes before it.
    expect(await engine.explainTask(taskId)).toMatchObject({
      queuePosition: 1,
      estimatedWaitSeconds: 30,
      estimatedStartTime: new Date(clock.nowMs() + 30_000),
    });
  });

  it('R-OB11: the task starts at its estimated start time, and not before', async () => {
    const { engine, clock } = under();
    const queue = await limited(engine, [requests]);
    const worker = await TestWorker.register(engine, { queues: [queue] });
    for (let n = 0; n < 4; n += 1) await engine.submit({ taskType: 'chat', queue });
    await worker.take(2);
    const { taskId, estimatedStartTime } = await engine.submit({ taskType: 'chat', queue });
    expect(estimatedStartTime).toEqual(new Date(clock.nowMs() + 3_000));
    expect(await engine.explainTask(taskId)).toMatchObject({ estimatedStartTime });
    for (let n = 0; n < 2; n += 1) {
      clock.advance(1_000);
      await worker.take(1);
    }
    clock.advance(999);
    expect(await worker.look(1)).toEqual([]);
    clock.advance(1);
    expect(await worker.look(1)).toMatchObject([{ taskId }]);
    expect(await engine.explainTask(taskId)).toMatchObject({ estimatedStartTime: null });
    await engine.pauseQueue(queue);
    const paused = await engine.submit({ taskType: 'chat', queue });
    expect(paused).toMatchObject({ estimatedWaitSeconds: null, estimatedStartTime: null });
  });

  it('R-OB11: how long a task ran, its deferrals and its returns are readable', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const { taskId } = await engine.submit({ taskType: 'chat', queue });
    const none = { executionDurationSeconds: null, deferrals: 0, returns: 0 };
    expect(await engine.getTask(taskId)).toMatchObject(none);
    const first = await worker.takeOne();
    clock.advance(2_000);
    expect(await engine.getTask(taskId)).toMatchObject({ executionDurationSeconds: 2 });
    await worker.fail(first, { code: 'BROKEN', retriable: true, retryAfterSeconds: 10 });
    clock.advance(1_000);
    // The last attempt, while the task waits for the next one.
    const waiting = { status: 'pending', executionDurationSeconds: 2, deferrals: 0 };
    expect(await engine.getTask(taskId)).toMatchObject(waiting);
    clock.advance(9_000);
    const second = await worker.takeOne();
    clock.advance(500);
    await worker.complete(second);
    clock.advance(60_000);
    const ended = { status: 'completed', executionDurationSeconds: 0.5, deferrals: 0, returns: 0 };
    expect(await engine.getTask(taskId)).toMatchObject(ended);
    const { items } = await engine.listTasks({ queue });
    expect(items).toMatchObject([ended]);
  });

  it('R-OB11: an attempt that the service answered with 429 counts as a deferral', async () => {
    const { engine } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const { taskId } = await engine.submit({ taskType: 'chat', queue });
    const held = await worker.takeOne();
    await worker.fail(held, { code: 'RATE_LIMITED', retriable: true, retryAfterSeconds: 5 });
    expect(await engine.getTask(taskId)).toMatchObject({ retryCount: 0, deferrals: 1 });
  });

  it('R-OB11: a task that its worker took and never started counts as returned, at no retry', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const { taskId } = await engine.submit({ taskType: 'chat', queue });
    for (const returns of [0, 1, 2]) {
      const taken = await worker.takeOne({ prefetch: true });
      const assigned = { status: 'assigned', attempt: returns + 1, retryCount: 0, returns };
      expect(await engine.getTask(taken.taskId)).toMatchObject(assigned);
      if (returns < 2) clock.advance(30_001);
    }
    const { items } = await engine.listTasks({ queue });
    expect(items).toMatchObject([{ returns: 2, deferrals: 0 }]);
    const { history } = await engine.getTask(taskId, { history: true });
    expect(history?.attempts).toMatchObject([
      { attempt: 1, outcome: 'released', error: { code: 'NEVER_STARTED' } },
      { attempt: 2, outcome: 'released', error: { code: 'NEVER_STARTED' } },
    ]);
  });

  it('R-CH4, R-CH5: in process, too, what is no limit and no cost is refused', async () => {
    const { engine } = under();
    const queue = freshQueue();
    const bad = [{ ...requests, rate: Number.NaN }];
    expect(await refusal(engine.putQueue(queue, { limits: bad }))).toBe('invalid_request');
    expect(await refusal(engine.putLimit(queue, { ...requests, rate: 0 }))).toBe('invalid_request');
    const draft = { taskType: 'chat', queue, cost: { tokens: -1 } };
    expect(await refusal(engine.submit(draft))).toBe('invalid_request');
    const outcomes = await engine.submitMany([draft, { taskType: 'chat', queue }]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['refused', 'accepted']);
  });
});
