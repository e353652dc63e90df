import { expect, it } from 'vitest';

import type { TaskId } from '../../src/domain/ids.js';
import type { Engine } from '../../src/engine/open-engine.js';
import type { ClaimedTask } from '../../src/protocol/workers-api.js';
import { until } from '../support/until.js';
import {
  describeOnEveryEngine,
  describeOnPostgres,
  disorder,
  drafts,
  freshQueue,
  indexOf,
  submitAll,
  TestWorker,
  untilStatus,
} from './support.js';

/** Members of workflows as they were started, and how many of one ever ran at once. */
class Watch {
  readonly started = new Map<string, number[]>();
  readonly #running = new Map<string, number>();
  most = 0;

  begin(task: ClaimedTask): void {
    const workflow = task.workflowId ?? '';
    this.started.set(workflow, [...(this.started.get(workflow) ?? []), indexOf(task)]);
    const running = (this.#running.get(workflow) ?? 0) + 1;
    this.#running.set(workflow, running);
    this.most = Math.max(this.most, running);
  }

  end({ workflowId }: ClaimedTask): void {
    this.#running.set(workflowId ?? '', (this.#running.get(workflowId ?? '') ?? 0) - 1);
  }
}

/** Takes and completes, several at a time, until `count` are done. */
async function workOff(
  engine: Engine,
  queue: string,
  count: number,
  workers: number,
): Promise<Watch> {
  const watch = new Watch();
  let done = 0;
  const work = async (): Promise<void> => {
    const worker = await TestWorker.register(engine, { queues: [queue] });
    while (done < count) {
      const tasks = await worker.look(5, { waitMs: 50 });
      for (const task of tasks) watch.begin(task);
      await new Promise((resolve) => setTimeout(resolve, 1));
      for (const task of tasks) watch.end(task);
      const answers = await worker.completeAll(tasks);
      done += answers.filter(({ accepted }) => accepted).length;
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  return watch;
}

function inOrder(length: number): number[] {
  return Array.from({ length }, (_, index) => index);
}

describeOnEveryEngine('workflows', (under) => {
  async function begin(count: number): Promise<{
    queue: string;
    workflowId: string;
    worker: TestWorker;
    taskIds: readonly TaskId[];
  }> {
    const queue = freshQueue();
    const workflowId = `workflow-of-${queue}`;
    const { engine } = under();
    const taskIds = await submitAll(
      engine,
      drafts(count, { taskType: 'step', queue, workflowId, maxRetries: 0 }),
    );
    const worker = await TestWorker.register(engine, { queues: [queue] });
    return { queue, workflowId, worker, taskIds };
  }

  it('R-WO2: 10 tasks of a workflow run one at a time, in order, over 3 workers', async () => {
    const { queue, workflowId } = await begin(10);
    const watch = await workOff(under().engine, queue, 10, 3);
    expect(watch.most).toBe(1);
    expect(watch.started.get(workflowId)).toEqual(inOrder(10));
  });

  it('R-WO2: a failed attempt keeps the place of its task, through its backoff', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    await submitAll(engine, drafts(3, { taskType: 'step', queue, workflowId: queue }));
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await worker.fail(await worker.takeOne());
    expect(await worker.look(5, { waitMs: 50 })).toEqual([]);
    clock.advance(1_150);
    const retried = await worker.takeOne();
    expect([indexOf(retried), retried.attempt]).toEqual([0, 2]);
    await worker.complete(retried);
    expect(indexOf(await worker.takeOne())).toBe(1);
    await engine.cancelTasks({ queue });
  });

  it('R-WO2: a dead letter halts its workflow until it is replayed', async () => {
    const { engine } = under();
    const { worker, taskIds } = await begin(3);
    await worker.complete(await worker.takeOne());
    const second = await worker.takeOne();
    await worker.fail(second);
    expect(await worker.look(5, { waitMs: 50 })).toEqual([]);
    const [, , third] = taskIds;
    if (third === undefined) throw new Error('3 were submitted');
    expect(await engine.getTask(third)).toMatchObject({ status: 'pending' });
    const { reasons } = await engine.explainTask(third);
    expect(reasons[0]).toMatchObject({ kind: 'workflow' });

    await engine.replayTask(second.taskId);
    const replayed = await worker.takeOne();
    expect(replayed.taskId).toBe(second.taskId);
    expect(await worker.look(5)).toEqual([]);
    await worker.complete(replayed);
    const last = await worker.takeOne();
    expect(last.taskId).toBe(third);
    await worker.complete(last);
  });

  it('R-WO2: cancelling the dead letter lets the next one go', async () => {
    const { engine } = under();
    const { worker } = await begin(2);
    const first = await worker.takeOne();
    await worker.fail(first);
    expect(await engine.cancelTask(first.taskId)).toMatchObject({ wasExecuting: false });
    const next = await worker.takeOne();
    expect(indexOf(next)).toBe(1);
    await worker.complete(next);
  });

  it('R-WO2: with workflow_on_failure continue the next one goes by itself', async () => {
    const { engine } = under();
    const queue = freshQueue();
    await submitAll(
      engine,
      drafts(4, {
        taskType: 'step',
        queue,
        workflowId: queue,
        workflowOnFailure: 'continue',
        maxRetries: 0,
      }),
    );
    const worker = await TestWorker.register(engine, { queues: [queue] });
    for (const index of inOrder(4)) {
      const task = await worker.takeOne();
      expect(indexOf(task)).toBe(index);
      expect(await worker.look(5)).toEqual([]);
      await worker.fail(task);
    }
  });

  it('R-CH11: a member that expires for capacity halts its workflow; its deadline runs from its turn', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const [first, second] = await submitAll(
      engine,
      drafts(3, { taskType: 'step', queue, workflowId: queue, dispatchDeadlineSeconds: 60 }),
    );
    if (first === undefined || second === undefined) throw new Error('3 were submitted');
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const task = await worker.takeOne();
    clock.advance(120_000);
    await worker.complete(task);
    await untilStatus(engine, second, 'queued');
    clock.advance(59_000);
    expect((await engine.getTask(second)).status).toBe('queued');
    clock.advance(2_000);
    await untilStatus(engine, second, 'failed');
    expect(await worker.look(5, { waitMs: 50 })).toEqual([]);
    await engine.cancelTask(second);
    const third = await worker.takeOne();
    expect(indexOf(third)).toBe(2);
    await worker.complete(third);
  });

  it('R-WO2: a member cancelled while it runs keeps its place until its worker let go', async () => {
    const { engine } = under();
    const letGo: ((worker: TestWorker, task: ClaimedTask) => Promise<unknown>)[] = [
      (worker, task) => worker.complete(task),
      (worker, task) => worker.fail(task),
      (worker, task) => engine.release(worker.workerId, [task]),
    ];
    for (const act of letGo) {
      const { worker } = await begin(2);
      const running = await worker.takeOne();
      await engine.cancelTask(running.taskId);
      expect(await worker.look(5, { waitMs: 50 })).toEqual([]);
      await act(worker, running);
      const next = await worker.takeOne();
      expect(indexOf(next)).toBe(1);
      await worker.complete(next);
    }
  });

  it('R-WO2: … or until its attempt would have timed out, and 5 s more', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    await submitAll(
      engine,
      drafts(2, { taskType: 'step', queue, workflowId: queue, timeoutSeconds: 100 }),
    );
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const running = await worker.takeOne();
    await engine.cancelTask(running.taskId);
    clock.advance(104_000);
    expect(await worker.look(5, { waitMs: 50 })).toEqual([]);
    clock.advance(1_001);
    expect(indexOf(await worker.takeOne())).toBe(1);
    await engine.cancelTasks({ queue });
  });

  it('R-WO2: a member that waits can be cancelled; those behind it move up', async () => {
    const { engine } = under();
    const { worker, taskIds } = await begin(4);
    const [, second, third] = taskIds;
    if (second === undefined || third === undefined) throw new Error('4 were submitted');
    const first = await worker.takeOne();
    await engine.cancelTask(second);
    await worker.complete(first);
    const next = await worker.takeOne();
    expect(next.taskId).toBe(third);
    // Replayed, it is in front of one that waits and behind the one that runs.
    await engine.replayTask(second);
    expect(await worker.look(5, { waitMs: 50 })).toEqual([]);
    await worker.complete(next);
    const replayed = await worker.takeOne();
    expect(replayed.taskId).toBe(second);
    await worker.complete(replayed);
    const last = await worker.takeOne();
    expect(indexOf(last)).toBe(3);
    await worker.complete(last);
  });

  it('R-WO2: a member submitted after all others ended runs', async () => {
    const { engine } = under();
    const { queue, workflowId, worker } = await begin(1);
    await worker.complete(await worker.takeOne());
    await engine.submit({ taskType: 'step', queue, workflowId, parameters: { index: 1 } });
    const late = await worker.takeOne();
    expect(indexOf(late)).toBe(1);
    await worker.complete(late);
  });
});

describeOnPostgres('workflows in parallel', (server) => {
  it('R-WO2: 100 workflows run in parallel, each in order, one member at a time', async () => {
    const engine = await server().open();
    const members = Array.from({ length: 1_000 }, (_, n) => ({
      taskType: 'step',
      queue: 'parallel',
      workflowId: `w${n % 100}`,
      parameters: { index: Math.floor(n / 100) },
    }));
    await submitAll(engine, members);
    const first = await TestWorker.register(engine, { queues: ['parallel'] });
    const heads = await first.take(100);
    expect(new Set(heads.map(({ workflowId }) => workflowId)).size).toBe(100);
    expect(await first.look(10)).toEqual([]);
    await first.completeAll(heads);

    const watch = await workOff(engine, 'parallel', 900, 3);
    expect(watch.most).toBe(1);
    for (const started of watch.started.values()) {
      expect(started).toEqual(inOrder(10).slice(1));
    }
  });

  it('R-WO2: members submitted one by one, by two processes, while others finish, all run', async () => {
    const engine = await server().open({ settings: { sweepIntervalMs: 3_600_000 } });
    const submitting = await server().open({ role: 'submit' });
    const rounds = 150;
    const workflows = ['left', 'right'];
    const submit = async (workflowId: string): Promise<void> => {
      for (let index = 0; index < rounds; index++) {
        const through = index % 2 === 0 ? engine : submitting;
        const parameters = { index };
        await through.submit({ taskType: 'step', queue: 'one-by-one', workflowId, parameters });
      }
    };
    const working = workOff(engine, 'one-by-one', rounds * workflows.length, 2);
    await Promise.all(workflows.map(submit));
    const watch = await working;
    expect(watch.most).toBe(1);
    for (const workflowId of workflows) {
      expect(watch.started.get(workflowId)).toEqual(inOrder(rounds));
    }
  });

  it('R-WO2: members that find their workflow locked keep their order, and delay nobody', async () => {
    const engine = await server().open();
    const member = { taskType: 'step', queue: 'locked', workflowId: 'locked' };
    await engine.submit({ ...member, parameters: { index: 0 } });
    const holder = await server().connect();
    await holder.query('begin');
    await holder.query(`select from sluice.workflows where id = 'locked' for update`);
    const waiting = submitAll(engine, drafts(2_001, member).slice(1));
    const passing = await engine.submit({ taskType: 'step', queue: 'passing' });
    expect(passing.status).toBe('queued');
    await holder.query('commit');
    await waiting;
    const rows = await server().sql<{ parameters: { index: number } }>(
      `select parameters from sluice.tasks join sluice.task_inputs on task_id = id
       where workflow_id = 'locked' order by seq`,
    );
    expect(disorder(rows, 2_001)).toBe('none');
  });

  it('R-AD7: a member whose workflow stays locked is refused, and those that came with it are accepted', async () => {
    const engine = await server().open();
    const queue = freshQueue();
    const member = { taskType: 'step', queue, workflowId: 'locked-for-long' };
    await engine.submit(member);
    const holder = await server().connect();
    await holder.query('begin');
    await holder.query(`select from sluice.workflows where id = 'locked-for-long' for update`);
    const [first, refused, last] = await engine.submitMany([
      { taskType: 'step', queue },
      member,
      { taskType: 'step', queue },
    ]);
    expect([first?.kind, last?.kind]).toEqual(['accepted', 'accepted']);
    expect(refused).toMatchObject({ kind: 'refused', code: 'unavailable', retryAfterSeconds: 1 });
    // Alone it is an error, as ever.
    await expect(engine.submitMany([member])).rejects.toMatchObject({ code: 'unavailable' });
    await holder.query('commit');
    const rows = await server().sql('select from sluice.tasks where queue = $1', [queue]);
    expect(rows).toHaveLength(3);
  });

  it('R-WO2: a whole workflow is cancelled from its end, so that nobody is let go meanwhile', async () => {
    const engine = await server().open();
    const workflowId = 'whole';
    await submitAll(engine, drafts(2_500, { taskType: 'step', queue: workflowId, workflowId }));
    const worker = await TestWorker.register(engine, { queues: [workflowId] });
    const head = await worker.takeOne();
    const progress = { isDone: false };
    const cancelling = engine.cancelTasks({ workflowId }).finally(() => (progress.isDone = true));
    while (!progress.isDone) expect(await worker.look(5, { waitMs: 20 })).toEqual([]);
    expect(await cancelling).toEqual({ cancelled: 2_500, nextCursor: null });
    expect(await worker.complete(head)).toMatchObject({ accepted: false });
    expect(await worker.look(5, { waitMs: 50 })).toEqual([]);
    const left = await server().sql('select from sluice.tasks where workflow_id = $1', [
      workflowId,
    ]);
    expect(left).toEqual([]);
  });

  it('R-WO2: cancels, failures, replays and completions at once leave no workflow stuck', async () => {
    const engine = await server().open({ settings: { sweepIntervalMs: 3_600_000 } });
    const workflowIds = Array.from({ length: 20 }, (_, n) => `mixed-${n}`);
    const queue = 'mixed';
    const taskIds = await submitAll(
      engine,
      workflowIds.flatMap((workflowId) =>
        drafts(10, { taskType: 'step', queue, workflowId, maxRetries: 0 }),
      ),
    );
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const work = async (): Promise<void> => {
      for (let idle = 0; idle < 5;) {
        const tasks = await worker.look(5, { waitMs: 100 });
        idle = tasks.length === 0 ? idle + 1 : 0;
        await Promise.all(
          tasks.map((task) =>
            (indexOf(task) + task.attempt) % 3 === 0 ? worker.fail(task) : worker.complete(task),
          ),
        );
      }
    };
    const disturb = async (): Promise<void> => {
      for (const [index, taskId] of taskIds.entries()) {
        if (index % 4 === 0) await engine.cancelTask(taskId).catch(() => undefined);
        if (index % 3 === 0) await engine.replayTask(taskId).catch(() => undefined);
      }
    };
    await Promise.all([work(), work(), disturb()]);
    // Whatever halts is brought back until nothing does.
    await until('every workflow to end', async () => {
      await engine.replayDeadLetters({ queue });
      await work();
      const left = await server().sql(
        `select id, workflow_id, seq, status, waits_for, run_at, attempt, lease from sluice.tasks
         where queue = $1 order by seq`,
        [queue],
      );
      // Rather than false: what was left is then the cause of the failure, and can be looked into.
      expect(left).toEqual([]);
      return true;
    });
    expect(await server().sql('select from sluice.workflows where held_task is not null')).toEqual(
      [],
    );
  });
});
