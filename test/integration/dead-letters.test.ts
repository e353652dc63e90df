import { expect, it } from 'vitest';

import type { TaskId } from '../../src/domain/ids.js';
import type { Engine } from '../../src/engine/open-engine.js';
import { defineTask, NonRetriableError, Sluice, type TaskEvent } from '../../src/index.js';
import type { TaskDraft } from '../../src/protocol/tasks-api.js';
import { until } from '../support/until.js';
import {
  describeOnEveryEngine,
  describeOnPostgres,
  drafts,
  freshQueue,
  submitAll,
  TestWorker,
  untilStatus,
} from './support.js';

const hopeless = { code: 'INVALID_INPUT', message: 'no such thing' };

/** So many dead letters in a queue of their own, and who made them. */
async function makeDeadLetters(
  engine: Engine,
  count: number,
  draft: Partial<TaskDraft> = {},
): Promise<{ queue: string; taskIds: readonly TaskId[]; worker: TestWorker }> {
  const queue = freshQueue();
  const taskIds = await submitAll(engine, drafts(count, { taskType: 'bad', queue, ...draft }));
  const worker = await TestWorker.register(engine, { queues: [queue] });
  const taken = await worker.take(count);
  await Promise.all(taken.map((task) => worker.fail(task, hopeless)));
  return { queue, taskIds, worker };
}

describeOnEveryEngine('dead letters', (under) => {
  it('R-RE5: tell why, and every attempt that led there', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const { taskId } = await engine.submit({ taskType: 'bad', queue, maxRetries: 1 });
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await worker.fail(await worker.takeOne(), { code: 'FIRST', message: 'once' });
    clock.advance(5_000);
    await worker.fail(await worker.takeOne(), { code: 'SECOND', message: 'twice' });
    const { workerId } = worker;
    const task = await engine.getTask(taskId, { history: true });
    const lastAttempt = {
      startedAt: task.history?.attempts.at(-1)?.startedAt,
      assignedWorkerId: workerId,
    };
    expect(task).toMatchObject({
      status: 'dead_letter',
      error: { code: 'SECOND' },
      ...lastAttempt,
    });
    expect((await engine.listDeadLetters({ queue })).items).toMatchObject([lastAttempt]);
    expect((await engine.listTasks({ queue })).items).toMatchObject([lastAttempt]);
    expect(task.history?.attempts).toMatchObject([
      { attempt: 1, workerId, outcome: 'failed', error: { code: 'FIRST', message: 'once' } },
      { attempt: 2, workerId, outcome: 'failed', error: { code: 'SECOND', message: 'twice' } },
    ]);
    for (const attempt of task.history?.attempts ?? []) {
      expect(attempt.startedAt).toBeInstanceOf(Date);
      expect(attempt.endedAt.getTime()).toBeGreaterThanOrEqual(attempt.startedAt.getTime());
    }
    expect(task.history?.states.at(-1)).toMatchObject({
      state: 'dead_letter',
      reason: expect.any(String) as string,
    });
  });

  it('R-RE5: a replay by filter is spread at the rate asked for', async () => {
    const { engine, clock } = under();
    const { queue, taskIds, worker } = await makeDeadLetters(engine, 5);
    const beganMs = clock.nowMs();
    const answer = await engine.replayDeadLetters({ queue }, { perSecond: 2, newPriority: 'high' });
    expect(answer).toMatchObject({ replayed: 5, nextCursor: null });
    expect(answer.lastDueAt?.getTime()).toBeCloseTo(beganMs + 2_000, -2);
    const first = await worker.takeOne();
    expect(first).toMatchObject({ taskId: taskIds[0], priority: 'high', retryCount: 0 });
    expect(await worker.look(5)).toEqual([]);
    clock.advance(1_000);
    const next = await worker.take(2);
    expect(next.map((task) => task.taskId)).toEqual(taskIds.slice(1, 3));
    expect(await worker.look(5)).toEqual([]);
    clock.advance(1_000);
    expect(await worker.take(2)).toHaveLength(2);
  });

  it('R-RE5: replayed twice at once, each comes back once', async () => {
    const { engine } = under();
    const { queue, taskIds, worker } = await makeDeadLetters(engine, 30);
    const replay = () => engine.replayDeadLetters({ queue }, { perSecond: 100_000 });
    const answers = await Promise.all([replay(), replay(), replay()]);
    expect(answers.reduce((sum, { replayed }) => sum + replayed, 0)).toBe(30);
    const taken = await worker.take(30);
    expect(new Set(taken.map((task) => task.taskId))).toEqual(new Set(taskIds));
    expect(await worker.look(5)).toEqual([]);
  });

  it('R-RE5: only what the filter means is replayed', async () => {
    const { engine, clock } = under();
    const { queue, taskIds } = await makeDeadLetters(engine, 2);
    const now = new Date(clock.nowMs());
    const nothing = [{ code: 'OTHER' }, { taskType: 'good' }, { until: new Date(0) }];
    for (const filter of nothing) {
      const answer = await engine.replayDeadLetters({ queue, ...filter });
      expect(answer).toEqual({ replayed: 0, lastDueAt: null, nextCursor: null });
    }
    clock.advance(1);
    const ended = { since: new Date(now.getTime() - 60_000), until: new Date(clock.nowMs()) };
    expect(await engine.listDeadLetters({ queue, ...ended })).toMatchObject({ totalCount: 2 });
    const answer = await engine.replayDeadLetters({ queue, code: hopeless.code, ...ended });
    expect(answer.replayed).toBe(taskIds.length);
  });

  it('R-OB10: are counted by pattern as soon as they end, and a pattern is replayed', async () => {
    const { engine, clock } = under();
    const { queue, taskIds, worker } = await makeDeadLetters(engine, 3);
    const patternOf = async () => {
      const patterns = await engine.analyseDeadLetters({ queues: [queue], owner: null });
      return patterns.find(({ message }) => message === hopeless.message);
    };
    const found = await until('the dead letters to be counted', async () => {
      const pattern = await patternOf();
      return pattern?.count === taskIds.length ? pattern : null;
    });
    expect(found).toMatchObject({ code: hopeless.code, queues: [{ queue, count: 3 }] });
    expect(found.hourly.at(-1)).toBe(3);
    const filter = { pattern: found.id, queue };
    expect(await engine.listDeadLetters(filter)).toMatchObject({ totalCount: 3 });
    const { replayed } = await engine.replayDeadLetters(filter, { perSecond: 1_000 });
    expect(replayed).toBe(3);
    expect(await engine.listDeadLetters(filter)).toMatchObject({ totalCount: 0 });
    clock.advance(10);
    expect(await worker.take(3)).toHaveLength(3);
    await until('none to be counted any more', async () => (await patternOf()) === undefined);
  });

  it('R-CH11: time that a recovered task spent running does not fail it', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const draft = { taskType: 'slow', queue, dispatchDeadlineSeconds: 10, timeoutSeconds: 3_600 };
    const { taskId } = await engine.submit(draft);
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const running = await worker.takeOne();
    clock.advance(600_000);
    await worker.fail(running);
    clock.advance(600_000);
    expect(await worker.takeOne()).toMatchObject({ taskId, attempt: 2 });
  });

  it('R-CH11: what a paused queue keeps from running fails at its deadline', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    await engine.pauseQueue(queue);
    const { taskId } = await engine.submit({ taskType: 't', queue, dispatchDeadlineSeconds: 10 });
    clock.advance(10_000);
    const failed = await untilStatus(engine, taskId, 'failed');
    expect(failed.error).toMatchObject({ code: 'capacity' });
    // From then on it has as much time again.
    await engine.replayTask(taskId);
    expect((await engine.getTask(taskId)).dispatchDeadline).toEqual(
      new Date(clock.nowMs() + 10_000),
    );
    clock.advance(10_000);
    await untilStatus(engine, taskId, 'failed');
  });
});

describeOnPostgres('dead letters', (server) => {
  it('R-RE5: a great many are replayed call by call, where the last one ended', async () => {
    const engine = await server().open();
    const queue = freshQueue();
    await engine.submit({ taskType: 'bad', queue });
    await server().sql(
      `insert into sluice.tasks (id, queue, task_type, priority, status, created_at, eligible_at,
         ended_at, timeout_seconds, max_retries, error)
       select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0')
           || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
         $1, 'bad', 1, 'dead_letter', now(), now(), now(), 60, 3,
         '{"code":"BROKEN","message":"","retriable":true}'
       from generate_series(1, 10500) n`,
      [queue],
    );
    const first = await engine.replayDeadLetters({ queue }, { perSecond: 1_000 });
    expect(first.replayed).toBe(10_000);
    const cursor = first.nextCursor ?? '';
    const rest = await engine.replayDeadLetters({ queue }, { perSecond: 1_000, cursor });
    expect(rest).toMatchObject({ replayed: 500, nextCursor: null });
    const spreadMs = (rest.lastDueAt?.getTime() ?? 0) - (first.lastDueAt?.getTime() ?? 0);
    expect(spreadMs).toBeGreaterThanOrEqual(499);
    const [left] = await server().sql<{ count: number }>(
      `select count(*)::int as count from sluice.tasks where queue = $1 and status = 'dead_letter'`,
      [queue],
    );
    expect(left).toEqual({ count: 0 });
  });

  it('R-RE5: whoever embeds the engine hears of them', async () => {
    const heard: TaskEvent[] = [];
    await using sluice = await Sluice.open({
      databaseUrl: server().url,
      onTaskEvent: (event) => {
        if (event.to === 'dead_letter') heard.push(event);
      },
    });
    const bad = defineTask({
      type: 'bad',
      queue: freshQueue(),
      run: () => {
        throw new NonRetriableError('never');
      },
    });
    const { id } = await sluice.submit(bad, {});
    await sluice.worker([bad]).start();
    const event = await until('the dead letter to be told', () =>
      heard.find(({ taskId }) => taskId === id),
    );
    expect(event).toMatchObject({
      taskId: id,
      taskType: 'bad',
      queue: bad.queue,
      errorCode: expect.any(String) as string,
      reason: expect.any(String) as string,
    });
  });
});
