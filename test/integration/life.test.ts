import { expect, it } from 'vitest';

import type { Priority } from '../../src/domain/priority.js';
import type { JsonValue } from '../../src/domain/json.js';
import type { TaskView } from '../../src/protocol/tasks-api.js';
import type { ClaimedTask } from '../../src/protocol/workers-api.js';
import {
  broken,
  describeOnEveryEngine,
  freshQueue,
  refusal,
  TestWorker,
  untilStatus,
} from './support.js';

/** Not what JSON people write by hand, but all of it is JSON. */
const hostileJson: readonly JsonValue[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  5e-324,
  9_007_199_254_740_991,
  '',
  'null',
  '\u0000',
  'before\u0000after',
  '\ud800',
  'a lone \udfff surrogate',
  '👩‍👩‍👧 \u202e \ufffd \u2028',
  '\\u0000 "quoted" \\',
  [],
  {},
  [null, [], [[]], {}],
  { '': 1, 'key\u0000': '\u0000', '\ud83d': ['\udc00'], a: { b: { c: [1, 'two', null] } } },
  JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}') as JsonValue,
];

describeOnEveryEngine('the life of a task', (under) => {
  async function begin(): Promise<{ queue: string; worker: TestWorker }> {
    const queue = freshQueue();
    const worker = await TestWorker.register(under().engine, { queues: [queue] });
    return { queue, worker };
  }

  /** Everything that a stale write could have changed. */
  async function wholeOf(task: Pick<ClaimedTask, 'taskId'>): Promise<TaskView> {
    return under().engine.getTask(task.taskId, { history: true });
  }

  it('R-ST1: submit, poll, report: completed, with a history that tells it', async () => {
    const { engine } = under();
    const { queue, worker } = await begin();
    const receipt = await engine.submit({ taskType: 'add', queue, parameters: { a: 1, b: 2 } });
    expect(receipt).toMatchObject({ status: 'queued', queue, created: true, queuePosition: 0 });

    const task = await worker.takeOne();
    expect(task).toMatchObject({ taskId: receipt.taskId, parameters: { a: 1, b: 2 } });
    expect(task).toMatchObject({ attempt: 1, retryCount: 0 });
    expect(await engine.getTask(task.taskId)).toMatchObject({
      status: 'executing',
      assignedWorkerId: worker.workerId,
    });
    expect(await worker.complete(task, 3)).toEqual({
      taskId: task.taskId,
      accepted: true,
      status: 'completed',
    });

    const done = await wholeOf(task);
    expect(done).toMatchObject({ status: 'completed', result: 3, error: null, retryCount: 0 });
    expect(done.history?.states.map(({ state }) => state)).toEqual([
      'queued',
      'executing',
      'completed',
    ]);
    expect(done.history?.attempts).toMatchObject([
      { attempt: 1, workerId: worker.workerId, outcome: 'succeeded' },
    ]);
  });

  it.each<[Priority, number, number]>([
    ['high', 300, 5],
    ['medium', 600, 3],
    ['low', 900, 2],
  ])('R-RE4: %s has a timeout of %i s and %i retries', async (priority, seconds, retries) => {
    const { queue, worker } = await begin();
    const { taskId } = await under().engine.submit({ taskType: 'noop', queue, priority });
    expect(await under().engine.getTask(taskId)).toMatchObject({
      timeoutSeconds: seconds,
      maxRetries: retries,
    });
    await worker.completeAll(await worker.take(1));
  });

  it('R-RE2, R-RE5: retries with backoff, then a dead letter, then a replay', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await begin();
    const { taskId } = await engine.submit({ taskType: 'flaky', queue, maxRetries: 2 });
    // 2^n s and half of the jitter of 30 %.
    for (const [retryCount, backoffMs] of [
      [0, 1_150],
      [1, 2_300],
    ] as const) {
      const task = await worker.takeOne();
      expect(task).toMatchObject({ taskId, retryCount, attempt: retryCount + 1 });
      expect(await worker.fail(task)).toMatchObject({ accepted: true, status: 'pending' });
      const waiting = await engine.getTask(taskId);
      expect(waiting.runAt?.getTime()).toBe(clock.nowMs() + backoffMs);
      clock.advance(backoffMs);
    }
    const last = await worker.takeOne();
    expect(await worker.fail(last)).toMatchObject({ accepted: true, status: 'dead_letter' });
    const dead = await wholeOf(last);
    expect(dead).toMatchObject({ status: 'dead_letter', retryCount: 2, error: broken });
    expect(dead.history?.attempts.map(({ outcome }) => outcome)).toEqual([
      'failed',
      'failed',
      'failed',
    ]);
    expect(dead.history?.states.at(-1)).toMatchObject({ reason: 'all 2 retries are spent' });

    clock.advance(5_000);
    const replayed = await engine.replayTask(taskId, { newPriority: 'high' });
    expect(replayed).toMatchObject({ retryCount: 0, priority: 'high', error: null });
    expect(replayed.eligibleAt.getTime()).toBe(clock.nowMs());
    const again = await worker.takeOne();
    expect(again).toMatchObject({ taskId, attempt: 4, retryCount: 0, priority: 'high' });
    expect(await worker.complete(again)).toMatchObject({ status: 'completed' });
    expect(await refusal(engine.replayTask(taskId))).toBe('task_completed');
  });

  it('R-CH11, R-RE2: a retry is not taken before its backoff is over', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await begin();
    const { taskId } = await engine.submit({ taskType: 'flaky', queue });
    await worker.fail(await worker.takeOne());
    const marker = await engine.submit({ taskType: 'marker', queue, delaySeconds: 1.149 });
    clock.advance(1_149);
    // When this one has come, everything that was due at this instant has.
    const first = await worker.takeOne();
    expect(first.taskId).toBe(marker.taskId);
    expect((await engine.getTask(taskId)).status).toBe('pending');
    clock.advance(1);
    const second = await worker.takeOne();
    expect(second.taskId).toBe(taskId);
    await worker.completeAll([first, second]);
  });

  it.each([
    ['an error that says so', { retriable: false }],
    ['INVALID_INPUT', { code: 'INVALID_INPUT' }],
    ['RESULT_TOO_LARGE', { code: 'RESULT_TOO_LARGE' }],
  ])('R-RE4: %s is not retried', async (_, error) => {
    const { queue, worker } = await begin();
    const { taskId } = await under().engine.submit({ taskType: 'noop', queue });
    const answer = await worker.fail(await worker.takeOne(), error);
    const next = {
      kind: 'dead_letter',
      reason: expect.stringContaining('is not retried') as string,
    };
    expect(answer).toEqual({ taskId, accepted: true, status: 'dead_letter', next });
    expect(await under().engine.getTask(taskId)).toMatchObject({ retryCount: 0, attempt: 1 });
  });

  it('R-WO8: a released task goes back at no cost', async () => {
    const { engine } = under();
    const { queue, worker } = await begin();
    const { taskId } = await engine.submit({ taskType: 'noop', queue, maxRetries: 0 });
    for (let round = 1; round <= 20; round++) {
      const task = await worker.takeOne();
      expect(task).toMatchObject({ taskId, attempt: round, retryCount: 0 });
      expect(await engine.release(worker.workerId, [task])).toEqual({
        released: [taskId],
        lost: [],
      });
    }
    const task = await worker.takeOne();
    await worker.complete(task);
    const { history } = await wholeOf(task);
    expect(history?.attempts).toHaveLength(21);
    expect(history?.attempts[0]).toMatchObject({ outcome: 'released' });
  });

  it('R-ST3: a prefetched task is assigned until its worker starts it', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await begin();
    await engine.submit({ taskType: 'noop', queue, timeoutSeconds: 50 });
    const task = await worker.takeOne({ prefetch: true });
    expect(await engine.getTask(task.taskId)).toMatchObject({
      status: 'assigned',
      startedAt: null,
    });
    clock.advance(1);
    await engine.start(worker.workerId, task);
    const started = await engine.getTask(task.taskId);
    expect(started.status).toBe('executing');
    await engine.start(worker.workerId, task);
    expect(await engine.getTask(task.taskId)).toEqual(started);
    await worker.complete(task, 'done');
    expect((await wholeOf(task)).history?.states.map(({ state }) => state)).toEqual([
      'queued',
      'assigned',
      'executing',
      'completed',
    ]);
  });

  it('a result that comes before the start counts', async () => {
    const { engine } = under();
    const { queue, worker } = await begin();
    await engine.submit({ taskType: 'noop', queue });
    const task = await worker.takeOne({ prefetch: true });
    expect(await worker.complete(task)).toMatchObject({ accepted: true, status: 'completed' });
  });

  it('a task that nobody starts goes back 10 times at no cost, then it is a dead letter', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await begin();
    const { taskId } = await engine.submit({ taskType: 'noop', queue, maxRetries: 0 });
    for (let round = 1; round <= 11; round++) {
      const task = await worker.takeOne({ prefetch: true });
      expect(task).toMatchObject({ taskId, attempt: round, retryCount: 0 });
      clock.advance(30_001);
    }
    const dead = await untilStatus(engine, taskId, 'dead_letter');
    expect(dead).toMatchObject({ attempt: 11, retryCount: 0, error: { code: 'NEVER_STARTED' } });
    expect((await wholeOf(dead)).history?.states.at(-1)).toMatchObject({
      reason: 'assigned 11 times and never started',
    });
  });

  it('R-WO6, R-RE3: an attempt past its timeout is ended by the sweeper, and the next gets half as long again', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await begin();
    const { taskId } = await engine.submit({ taskType: 'slow', queue, timeoutSeconds: 10 });
    const task = await worker.takeOne();
    clock.advance(14_999);
    // A sweep after which the other one is gone has seen this one too.
    await engine.submit({ taskType: 'slow', queue, timeoutSeconds: 5 });
    const other = await worker.takeOne();
    expect((await engine.getTask(taskId)).status).toBe('executing');
    clock.advance(2);
    // Not before its worker was heard: one that is cut off may have finished it in time.
    await worker.beat([task, other]);
    const back = await untilStatus(engine, taskId, 'pending');
    expect(back).toMatchObject({ retryCount: 1, timeoutSeconds: 15 });
    expect((await wholeOf(back)).history?.attempts).toMatchObject([
      { outcome: 'timed_out', error: { code: 'TIMEOUT' } },
    ]);
    expect(await worker.complete(task)).toMatchObject({ accepted: false });
    expect(await worker.complete(other)).toMatchObject({ accepted: true });
    clock.advance(1_150);
    await worker.complete(await worker.takeOne());
  });

  it('R-WO11: progress is shown while it runs', async () => {
    const { engine } = under();
    const { queue, worker } = await begin();
    await engine.submit({ taskType: 'noop', queue });
    const task = await worker.takeOne();
    await engine.progress(worker.workerId, task, { percent: 10 });
    await engine.progress(worker.workerId, task, { percent: 42.5, message: 'page 3 of 7' });
    expect((await engine.getTask(task.taskId)).progress).toEqual({
      percent: 42.5,
      message: 'page 3 of 7',
    });
    await worker.complete(task);
  });

  it('R-RE9: a service that says slow down defers the task, which costs no retry', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await begin();
    const { taskId } = await engine.submit({ taskType: 'noop', queue, maxRetries: 0 });
    for (let round = 1; round <= 5; round++) {
      const task = await worker.takeOne();
      expect(task).toMatchObject({ taskId, attempt: round, retryCount: 0 });
      const limited = { code: 'RATE_LIMITED', message: '429', retryAfterSeconds: 7 };
      expect(await worker.fail(task, limited)).toMatchObject({ status: 'pending' });
      const dueMs = (await engine.getTask(taskId)).runAt?.getTime() ?? 0;
      // As long as the service said; when that was wrong again and again, longer.
      expect(dueMs - clock.nowMs()).toBe([7_000, 7_000, 7_000, 8_000, 16_000][round - 1]);
      clock.advance(dueMs - clock.nowMs());
    }
    const task = await worker.takeOne();
    await worker.complete(task);
    expect((await wholeOf(task)).history?.attempts.map(({ outcome }) => outcome)).toEqual([
      ...Array.from({ length: 5 }, () => 'deferred'),
      'succeeded',
    ]);
  });

  it('R-WO9: the same report again is answered as the first time', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await begin();
    const { taskId } = await engine.submit({ taskType: 'noop', queue, maxRetries: 1 });

    const first = await worker.takeOne();
    const failed = { taskId, accepted: true, status: 'pending' };
    const next = { kind: 'retry', inSeconds: expect.any(Number) as number };
    // When it is retried is told once: asked later it would be another time.
    expect(await worker.fail(first)).toEqual({ ...failed, next });
    expect(await worker.fail(first)).toEqual(failed);
    clock.advance(10_000);

    const second = await worker.takeOne();
    // Its retry runs already; what became of the first attempt stays what it was.
    expect(await worker.fail(first)).toEqual(failed);
    const completed = await worker.complete(second, 'once');
    expect(await worker.complete(second, 'twice')).toEqual(completed);
    expect(await worker.fail(first)).toEqual(failed);
    const same = { ...second, status: 'completed', result: 'thrice' } as const;
    expect(await engine.report(worker.workerId, [same, same])).toEqual([completed, completed]);
    expect(await engine.getTask(taskId)).toMatchObject({ result: 'once', retryCount: 1 });
  });

  it('R-ST3: after the task was claimed again, a stale lease changes nothing and is told so', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await begin();
    const { taskId } = await engine.submit({ taskType: 'slow', queue, timeoutSeconds: 10 });
    const stale = await worker.takeOne();
    clock.advance(15_001);
    await worker.beat([stale]);
    await untilStatus(engine, taskId, 'pending');
    clock.advance(2_000);
    const fresh = await worker.takeOne();
    expect(fresh).toMatchObject({ taskId, attempt: 2 });
    const before = await wholeOf(stale);
    const lost = { taskId, accepted: false, reason: 'lease_lost' };

    expect(await refusal(engine.start(worker.workerId, stale))).toBe('lease_lost');
    expect(await refusal(engine.progress(worker.workerId, stale, { percent: 99 }))).toBe(
      'lease_lost',
    );
    expect(await worker.complete(stale, 'stale')).toEqual(lost);
    expect(await worker.fail(stale)).toEqual(lost);
    expect(await worker.fail(stale, { retriable: false })).toEqual(lost);
    expect(await engine.release(worker.workerId, [stale])).toEqual({
      released: [],
      lost: [taskId],
    });
    expect(await wholeOf(stale)).toEqual(before);

    await worker.complete(fresh, 'fresh');
    const after = await wholeOf(stale);
    expect(await worker.complete(stale, 'stale')).toEqual(lost);
    expect(await wholeOf(stale)).toEqual(after);
    expect(after.result).toBe('fresh');
  });

  it('R-ST3: a stale lease beside a good one of the same task, in one call, is still lost', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await begin();
    const { taskId } = await engine.submit({ taskType: 'slow', queue, timeoutSeconds: 10 });
    const stale = await worker.takeOne();
    clock.advance(15_001);
    await worker.beat([stale]);
    await untilStatus(engine, taskId, 'pending');
    clock.advance(2_000);
    const fresh = await worker.takeOne({ prefetch: true });
    const { workerId } = worker;

    expect(
      await Promise.all([
        refusal(engine.start(workerId, stale)),
        refusal(engine.start(workerId, fresh)),
        refusal(engine.progress(workerId, fresh, { percent: 10 })),
        refusal(engine.progress(workerId, stale, { percent: 99 })),
      ]),
    ).toEqual(['lease_lost', null, null, 'lease_lost']);
    expect((await engine.getTask(taskId)).progress).toMatchObject({ percent: 10 });

    const answers = await engine.report(workerId, [
      { ...stale, status: 'completed', result: 'stale' },
      { ...fresh, status: 'completed', result: 'fresh' },
    ]);
    expect(answers.map(({ accepted }) => accepted)).toEqual([false, true]);
    expect(await engine.getTask(taskId)).toMatchObject({ result: 'fresh' });
  });

  it('R-AD7: every shape of JSON survives as parameters, result and error', async () => {
    const { engine } = under();
    const { queue, worker } = await begin();
    const drafts = hostileJson.map((value) => ({
      taskType: 'echo',
      queue,
      parameters: { value },
    }));
    await engine.submitMany(drafts);
    const tasks = await worker.take(hostileJson.length);
    expect(tasks.map(({ parameters }) => parameters.value)).toEqual(hostileJson);

    const answers = await Promise.all(
      tasks.map((task, index) => worker.complete(task, hostileJson[index] ?? null)),
    );
    expect(answers.every(({ accepted }) => accepted)).toBe(true);
    const views = await Promise.all(tasks.map(({ taskId }) => engine.getTask(taskId)));
    expect(views.map(({ result }) => result)).toEqual(hostileJson);
    expect(views.map(({ parameters }) => parameters.value)).toEqual(hostileJson);
  });

  it('R-AD7, R-RE5: a dead letter with a hostile error can be read, listed, analysed and replayed', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await begin();
    const error = {
      code: 'HOSTILE "\u0000"',
      message: 'nul \u0000, lone \ud800, "quotes" \\',
      retriable: true,
      details: hostileJson,
    };
    const { taskId } = await engine.submit({ taskType: 'bad', queue, maxRetries: 1 });
    await worker.fail(await worker.takeOne(), error);
    clock.advance(2_000);
    const last = await worker.takeOne();
    await worker.fail(last, error);
    const repeated = await worker.fail(last, error);
    expect(repeated).toMatchObject({ accepted: true, status: 'dead_letter' });

    const dead = await engine.getTask(taskId, { history: true });
    expect(dead.error).toEqual(error);
    expect(dead.history?.attempts.map((attempt) => attempt.error)).toEqual([error, error]);
    for (const filter of [{ queue }, { code: error.code, queue }]) {
      const listed = await engine.listDeadLetters(filter);
      expect(listed.items.map((item) => item.taskId)).toEqual([taskId]);
      expect(listed.totalCount).toBe(1);
    }
    const patterns = await engine.analyseDeadLetters();
    expect(patterns.find(({ queues }) => queues[0]?.queue === queue)).toMatchObject({
      code: error.code,
      count: 1,
      example: { taskId, message: error.message },
    });
    expect(await engine.replayDeadLetters({ queue, code: error.code })).toMatchObject({
      replayed: 1,
    });
    await worker.complete(await worker.takeOne());
  });

  it('cancel: waiting, running, twice, ended, unknown', async () => {
    const { engine } = under();
    const { queue, worker } = await begin();
    const delayed = await engine.submit({ taskType: 'noop', queue, delaySeconds: 3_600 });
    const queued = await engine.submit({ taskType: 'noop', queue });
    for (const { taskId } of [delayed, queued]) {
      expect(await engine.cancelTask(taskId)).toMatchObject({ taskId, wasExecuting: false });
      expect(await engine.cancelTask(taskId)).toMatchObject({ taskId, wasExecuting: false });
      expect((await engine.getTask(taskId)).status).toBe('cancelled');
    }
    expect(await worker.look()).toEqual([]);

    const { taskId } = await engine.submit({ taskType: 'noop', queue });
    const running = await worker.takeOne();
    expect(await engine.cancelTask(taskId)).toEqual({
      taskId,
      wasExecuting: true,
      workerNotified: true,
    });
    expect(await engine.cancelTask(taskId)).toEqual({
      taskId,
      wasExecuting: true,
      workerNotified: true,
    });
    expect(await worker.complete(running, 'too late')).toMatchObject({ accepted: false });
    expect(await engine.getTask(taskId)).toMatchObject({ status: 'cancelled', result: null });

    const ended = await engine.submit({ taskType: 'noop', queue });
    await worker.complete(await worker.takeOne());
    expect(await refusal(engine.cancelTask(ended.taskId))).toBe('task_ended');
    const nobody = '01890000-0000-7000-8000-000000000000' as typeof taskId;
    expect(await refusal(engine.cancelTask(nobody))).toBe('task_not_found');
    expect(await refusal(engine.replayTask(nobody))).toBe('task_not_found');
    expect(await refusal(engine.getTask(nobody))).toBe('task_not_found');
  });

  it('a cancelled task that is replayed runs again', async () => {
    const { engine } = under();
    const { queue, worker } = await begin();
    const { taskId } = await engine.submit({ taskType: 'noop', queue, parameters: { a: 1 } });
    const stale = await worker.takeOne();
    await engine.cancelTask(taskId);
    await engine.replayTask(taskId);
    const task = await worker.takeOne();
    expect(task).toMatchObject({ taskId, attempt: 2, parameters: { a: 1 } });
    expect(await worker.complete(stale)).toMatchObject({ accepted: false });
    expect(await worker.complete(task)).toMatchObject({ accepted: true });
  });
});
