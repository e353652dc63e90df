import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';

import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { createEmptyDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import {
  describeOnPostgres,
  disorder,
  drafts,
  refusal,
  submitAll,
  TestWorker,
  untilStatus,
} from './support.js';

// A lease that a busy machine does not let lapse by itself.
const quickTurns = { servingLeaseMs: 6_000, servingRenewMs: 300 };
const slowSweeps = { ...quickTurns, sweepIntervalMs: 3_600_000 };

describeOnPostgres('who serves', (server) => {
  it('R-CH12: every process serves, and another one leads when the first closes', async () => {
    const first = await server().open({ settings: quickTurns });
    const second = await server().open({ settings: quickTurns });
    expect([first.notServing(), second.notServing()]).toEqual([null, null]);
    expect([leads(first), leads(second)]).toEqual([true, false]);
    const worker = await TestWorker.register(second, { queues: ['turns'] });
    for (const engine of [first, second]) {
      const { taskId } = await engine.submit({ taskType: 'noop', queue: 'turns' });
      const task = await worker.takeOne();
      expect(task.taskId).toBe(taskId);
      await worker.complete(task);
    }

    await first.close();
    await until('the second to lead', () => leads(second));
    expect(second.leadership?.changes).toBe(1);
    const { taskId } = await second.submit({ taskType: 'noop', queue: 'turns' });
    const task = await worker.takeOne();
    expect(task.taskId).toBe(taskId);
    await worker.complete(task);
  });

  it('R-CH12: a follower takes what is submitted to it within moments, with nobody else to work', async () => {
    await server().open({ settings: slowSweeps });
    const follower = await server().open({ settings: slowSweeps });
    const worker = await TestWorker.register(follower, { queues: ['moments'] });
    const looking = worker.look(1, { waitMs: 60_000 });
    const { taskId } = await follower.submit({ taskType: 'noop', queue: 'moments' });
    const [task] = await looking;
    expect(task?.taskId).toBe(taskId);
  });

  it('R-CH12, R-RE8: another one leads when the leader is killed', async () => {
    const child = await serveInChild(server().url);
    const second = await server().open({ settings: quickTurns });
    expect([second.notServing(), leads(second)]).toEqual([null, false]);
    const { taskId } = await second.submit({ taskType: 'noop', queue: 'killed' });
    child.kill('SIGKILL');
    await once(child, 'exit');
    await until('the second to lead', () => leads(second));
    const worker = await TestWorker.register(second, { queues: ['killed'] });
    expect((await worker.takeOne()).taskId).toBe(taskId);
  });

  it('R-CH12: a follower that is closed frees nothing that is not its own', async () => {
    const first = await server().open({ settings: quickTurns });
    const second = await server().open({ settings: quickTurns });
    await second.close();
    await untilRenewed(2);
    expect(leads(first)).toBe(true);
    await first.close();
    await first.close();
  });

  it('R-CH12: a process that only submits: submits, reads, cancels, and its polls are refused', async () => {
    const serving = await server().open({ settings: slowSweeps });
    const submitting = await server().open({ role: 'submit', settings: slowSweeps });
    const worker = await TestWorker.register(serving, { queues: ['from-afar'] });

    // The sweeper's lap never comes: what is submitted is offered at once, and in order.
    const taskIds = await submitAll(
      submitting,
      drafts(2_000, { taskType: 'noop', queue: 'from-afar' }),
    );
    const tasks = await worker.take(2_000);
    expect(disorder(tasks, 2_000)).toBe('none');
    expect(tasks.map(({ taskId }) => taskId)).toEqual(taskIds);
    const [running] = tasks;
    if (running === undefined) throw new Error('tasks were taken');

    expect(await submitting.getTask(running.taskId)).toMatchObject({ status: 'executing' });
    expect(await submitting.cancelTask(running.taskId)).toMatchObject({ wasExecuting: true });
    // The bus may have told it before the heartbeat finds it out.
    const { cancelled, lost } = await worker.beat(tasks);
    expect([...new Set([...cancelled, ...lost])]).toEqual([running.taskId]);
    expect(await worker.complete(running)).toMatchObject({ accepted: false });
    await worker.completeAll(tasks.slice(1));
    const second = await untilStatus(submitting, taskIds[1] ?? running.taskId, 'completed');
    expect(second.status).toBe('completed');

    const afar = await TestWorker.register(submitting);
    expect(await refusal(afar.look())).toBe('unavailable');
    expect(await refusal(afar.look(1, { waitMs: 1_000 }))).toBe('unavailable');
  });

  it('R-CH12: what is submitted while no process leads starts when one does', async () => {
    const submitting = await server().open({ role: 'submit', settings: slowSweeps });
    const [taskId] = await submitAll(submitting, drafts(1, { taskType: 'noop', queue: 'alone' }));
    const serving = await server().open({ settings: slowSweeps });
    const worker = await TestWorker.register(serving, { queues: ['alone'] });
    expect((await worker.takeOne()).taskId).toBe(taskId);
  });

  it('R-CH12: what another process cancelled and replayed while it ran here runs again here', async () => {
    const serving = await server().open({ settings: quickTurns });
    const submitting = await server().open({ role: 'submit', settings: quickTurns });
    await serving.putQueue('back', { maxConcurrency: 1 });
    const worker = await TestWorker.register(serving, { queues: ['back'] });
    const { taskId } = await submitting.submit({ taskType: 'noop', queue: 'back' });
    const first = await worker.takeOne();
    await submitting.cancelTask(taskId);
    expect(await worker.complete(first)).toMatchObject({ accepted: false });
    await submitting.replayTask(taskId);
    const second = await worker.takeOne();
    expect(second).toMatchObject({ taskId, attempt: 2 });
    await worker.complete(second);
  });

  it('R-CH6, R-CH12: a slot is freed when another process cancels what ran in it', async () => {
    const serving = await server().open({ settings: quickTurns });
    const submitting = await server().open({ role: 'submit', settings: quickTurns });
    await serving.putQueue('slots', { maxConcurrency: 1 });
    const worker = await TestWorker.register(serving, { queues: ['slots'] });
    const first = await serving.submit({ taskType: 'noop', queue: 'slots' });
    const second = await serving.submit({ taskType: 'noop', queue: 'slots' });
    expect((await worker.takeOne()).taskId).toBe(first.taskId);
    await submitting.cancelTask(first.taskId);
    const next = await worker.takeOne();
    expect(next.taskId).toBe(second.taskId);
    await worker.complete(next);
  });

  it('R-CH12: whoever lost its lease follows, and what it accepts the new one gives', async () => {
    // A lease that no busy machine makes lapse, and of the two the second asks for it sooner.
    const settings = { ...slowSweeps, servingLeaseMs: 60_000 };
    const first = await server().open({ settings: { ...settings, servingRenewMs: 2_000 } });
    const second = await server().open({ settings });
    const before = await first.submit({ taskType: 'noop', queue: 'handed-over' });
    await loseTurn();
    await until('the second to lead', () => leads(second));
    await until('the first to notice', () => !leads(first));

    const after = await first.submit({ taskType: 'noop', queue: 'handed-over' });
    const worker = await TestWorker.register(first, { queues: ['handed-over'] });
    const tasks = await worker.take(2);
    expect(tasks.map(({ taskId }) => taskId)).toEqual([before.taskId, after.taskId]);
    await worker.completeAll(tasks);
  });

  it('R-ST8, R-CH12: of four that open an empty database at once, one leads and all serve', async () => {
    const { url, drop } = await createEmptyDatabase();
    onTestFinished(drop);
    const engines = await Promise.all(
      Array.from({ length: 4 }, () =>
        openEngine({ database: { kind: 'postgres', url }, settings: { servingLeaseMs: 60_000 } }),
      ),
    );
    expect(engines.filter((engine) => leads(engine))).toHaveLength(1);
    expect(engines.map((engine) => engine.notServing())).toEqual([null, null, null, null]);
    await Promise.all(engines.map((engine) => engine.close()));
  });

  it('whoever waits for a task in one process sees it end in another', async () => {
    const serving = await server().open({ settings: quickTurns });
    const submitting = await server().open({ role: 'submit', settings: quickTurns });
    const { taskId } = await submitting.submit({ taskType: 'noop', queue: 'awaited' });
    const waiting = submitting.waitForTask(taskId, 120_000);
    const worker = await TestWorker.register(serving, { queues: ['awaited'] });
    await worker.complete(await worker.takeOne(), 'seen');
    expect(await waiting).toMatchObject({ status: 'completed', result: 'seen' });
  });

  it('closing answers the polls that wait, and leaves the turn to the next', async () => {
    const engine = await server().open({ settings: quickTurns });
    const worker = await TestWorker.register(engine, { queues: ['nothing'] });
    const polls = Array.from({ length: 10 }, () => refusal(worker.look(1, { waitMs: 60_000 })));
    await engine.submit({ taskType: 'noop', queue: 'elsewhere' });
    await engine.close();
    expect(new Set(await Promise.all(polls))).toEqual(new Set(['unavailable']));
    const next = await server().open({ settings: quickTurns });
    expect(leads(next)).toBe(true);
  });

  it('a follower that is closed while it begins to lead stops for good', async () => {
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line) => lines.push(line) });
    const first = await server().open({ settings: slowSweeps });
    const second = await server().open({ settings: slowSweeps, log });
    const holder = await server().connect();
    // So that it holds its turn and has not begun.
    await holder.query('begin; lock table sluice.queues in access exclusive mode');
    await first.close();
    await until('the second to hold the turn', async () => {
      const rows = await server().sql('select from sluice.serving');
      return rows.length === 1;
    });
    const closed = second.close();
    await holder.query('commit');
    await closed;
    expect(await server().sql('select from sluice.serving')).toEqual([]);
    // A loop that outlived its engine would fail on the closed database, again every second.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(lines).toEqual([]);
  });

  /** As if the process that serves had been frozen for longer than its lease. */
  async function loseTurn(): Promise<void> {
    await server().sql(
      "update sluice.serving set holder = gen_random_uuid(), renewed_at = now() - interval '1 h'",
    );
  }

  async function untilRenewed(times: number): Promise<void> {
    const renewedAt = async (): Promise<string> => {
      const rows = await server().sql<{ at: string }>(
        'select renewed_at::text as at from sluice.serving',
      );
      return rows[0]?.at ?? '';
    };
    for (let time = 0; time < times; time++) {
      const last = await renewedAt();
      await until('the turn to be renewed', async () => (await renewedAt()) !== last);
    }
  }
});

function leads(engine: Engine): boolean {
  return engine.leadership?.leads === true;
}

/** A process that serves the database and does nothing else; it is killed, never asked to stop. */
async function serveInChild(url: string): Promise<ChildProcess> {
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', join(import.meta.dirname, 'fixtures/serve-engine.ts'), url],
    { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
  );
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  await once(child, 'message');
  return child;
}

describeOnPostgres('a step of the clock of Postgres', (server) => {
  const quick = { settings: { servingLeaseMs: 900, servingRenewMs: 300 } };

  it('R-CH12: backwards, it does not keep a follower waiting for a process that is gone', async () => {
    // As a process wrote it that was killed an hour before, by a clock that is now set back.
    await server().sql(
      `insert into sluice.serving (holder, ready_queue, renewed_at)
       values (gen_random_uuid(), 'memory', now() + interval '1 hour')`,
    );
    const engine = await server().open(quick);
    expect(leads(engine)).toBe(false);
    await until('it to lead', () => leads(engine), { deadlineMs: 10_000 });
  });

  it('R-CH12: forwards, it does not take the turn from a process that renews it', async () => {
    const engine = await server().open({ settings: { ...quick.settings, servingLeaseMs: 5_000 } });
    const follower = await server().open({
      settings: { ...quick.settings, servingLeaseMs: 5_000 },
    });
    expect([leads(engine), leads(follower)]).toEqual([true, false]);
    const renewals = await countRenewals(2);
    expect(renewals).toBe(2);
    // The follower looks every 150 ms, and sees what was renewed as an hour old.
    const endsMs = performance.now() + 1_500;
    while (performance.now() < endsMs) {
      await server().sql(
        `update sluice.serving set renewed_at = now() - interval '1 hour' - random() * interval '1 s'`,
      );
      expect([leads(engine), leads(follower)]).toEqual([true, false]);
    }
  });

  /** Waits until the row was renewed so often. */
  async function countRenewals(count: number): Promise<number> {
    const seen = new Set<string>();
    await until('the turn to be renewed', async () => {
      const rows = await server().sql<{ at: string }>(
        'select renewed_at::text as at from sluice.serving',
      );
      for (const { at } of rows) seen.add(at);
      return seen.size > count;
    });
    return seen.size - 1;
  }
});
