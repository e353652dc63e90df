import { expect, it, onTestFinished } from 'vitest';

import { openEngine } from '../../src/engine/open-engine.js';
import { until } from '../support/until.js';
import {
  describeOnEveryEngine,
  describeOnPostgres,
  drafts,
  freshQueue,
  refusal,
  submitAll,
  TestWorker,
  type TestServer,
} from './support.js';

/** As on a day that no process has prepared. */
async function dropPartitions(server: TestServer, parent: string): Promise<void> {
  await server.sql(`do $$
    declare child text;
    begin
      for child in
        select inhrelid::regclass::text from pg_inherits
        where inhparent = 'sluice.${parent}'::regclass
      loop
        execute 'drop table ' || child;
      end loop;
    end $$`);
}

async function partitions(server: TestServer, parent: string): Promise<number> {
  const rows = await server.sql(
    `select from pg_inherits where inhparent = ('sluice.' || $1)::regclass`,
    [parent],
  );
  return rows.length;
}

describeOnEveryEngine('how far ahead', (under) => {
  const dayMs = 24 * 3_600_000;
  it('R-HA6: a task is scheduled or moved a year ahead at most', async () => {
    const { engine, clock } = under();
    const draft = { taskType: 't', queue: freshQueue() };
    const day = (days: number) => new Date(clock.nowMs() + days * dayMs);
    const { taskId } = await engine.submit({ ...draft, runAt: day(365) });
    for (const fault of [{ runAt: day(367) }, { delaySeconds: 367 * 86_400 }]) {
      await expect(engine.submit({ ...draft, ...fault })).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringContaining('maxScheduleDays') as string,
      });
    }
    expect(await refusal(engine.changeTask(taskId, { runAt: day(367) }))).toBe('invalid_request');
    await engine.changeTask(taskId, { runAt: day(364) });
    const [good, bad] = await engine.submitMany([draft, { ...draft, delaySeconds: 1e9 }]);
    expect([good?.kind, bad?.kind]).toEqual(['accepted', 'refused']);
    await engine.cancelTasks({ queue: draft.queue });
  });

  it('R-HA6: dead letters are not spread further than that', async () => {
    const { engine } = under();
    const queue = freshQueue();
    await engine.submit({ taskType: 't', queue });
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await worker.fail(await worker.takeOne(), { code: 'INVALID_INPUT' });
    const slowly = engine.replayDeadLetters({ queue }, { perSecond: 1e-9 });
    expect(await refusal(slowly)).toBe('invalid_request');
    expect(await engine.replayDeadLetters({ queue })).toMatchObject({ replayed: 1 });
  });
});

describeOnPostgres('missing partitions', (server) => {
  it('R-HA6: a process that only submits makes the day that it finds missing', async () => {
    const engine = await server().open({ role: 'submit' });
    await dropPartitions(server(), 'task_inputs');
    const queue = freshQueue();
    const calls = Array.from({ length: 100 }, (_, n) =>
      refusal(engine.submit({ taskType: 't', queue, parameters: { n } })),
    );
    expect((await Promise.all(calls)).filter((code) => code !== null)).toEqual([]);
    const page = { limit: 1_000, include: ['parameters'] } as const;
    const { items } = await engine.listTasks({ queue }, page);
    expect(new Set(items.map(({ parameters }) => parameters?.n)).size).toBe(100);
  });

  it('R-HA6: members of workflows and tasks with a key come in on such a day', async () => {
    const engine = await server().open({ role: 'submit' });
    const queue = freshQueue();
    await dropPartitions(server(), 'task_inputs');
    const member = { taskType: 't', queue, workflowId: 'w' };
    expect(await refusal(engine.submit(member))).toBeNull();
    await dropPartitions(server(), 'task_inputs');
    const keyed = { taskType: 't', queue, idempotencyKey: 'k' };
    const [one, other] = await Promise.all([engine.submit(keyed), engine.submit(keyed)]);
    expect(one.taskId).toBe(other.taskId);
  });

  it('R-HA6: three processes meet the same missing day at once, and none is refused', async () => {
    const engines = await Promise.all(
      [1, 2, 3].map(() => server().open({ role: 'submit' as const })),
    );
    await dropPartitions(server(), 'task_inputs');
    const queue = freshQueue();
    const calls = engines.flatMap((engine) =>
      Array.from({ length: 50 }, () => refusal(engine.submit({ taskType: 't', queue }))),
    );
    expect((await Promise.all(calls)).filter((code) => code !== null)).toEqual([]);
  });

  it('R-HA6: work that finishes on a day without history is kept', async () => {
    const engine = await server().open();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const plain = await submitAll(engine, drafts(20, { taskType: 't', queue }));
    const member = await engine.submit({ taskType: 't', queue, workflowId: 'ends' });
    const cancelled = await engine.submit({ taskType: 't', queue, delaySeconds: 3_600 });
    const tasks = await worker.take(21);
    await dropPartitions(server(), 'task_history');
    const answers = await worker.completeAll(tasks);
    expect(answers.filter(({ accepted }) => !accepted)).toEqual([]);
    for (const taskId of [...plain, member.taskId]) {
      expect((await engine.getTask(taskId)).status).toBe('completed');
    }
    await dropPartitions(server(), 'task_history');
    await engine.cancelTask(cancelled.taskId);
    expect((await engine.getTask(cancelled.taskId)).status).toBe('cancelled');
  });

  it('R-HA6: every process that writes makes the days to come, also one that only submits', async () => {
    await server().open({ role: 'submit', settings: { upkeepIntervalMs: 20 } });
    const before = await partitions(server(), 'task_inputs');
    await dropPartitions(server(), 'task_inputs');
    await until('the days to be there again', async () => {
      return (await partitions(server(), 'task_inputs')) >= Math.min(before, 10);
    });
  });

  it('R-HA6: while a lock keeps the day from being made, submits are told to come back', async () => {
    const engine = await server().open({ role: 'submit' });
    const queue = freshQueue();
    await dropPartitions(server(), 'task_inputs');
    const other = await server().connect();
    await other.query('begin; lock table sluice.task_inputs in share update exclusive mode');
    const beganMs = performance.now();
    const calls = Array.from({ length: 50 }, () =>
      refusal(engine.submit({ taskType: 't', queue })),
    );
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['unavailable']));
    expect(performance.now() - beganMs).toBeLessThan(5_000);
    await other.query('rollback');
    expect(await refusal(engine.submit({ taskType: 't', queue }))).toBeNull();
  });

  it('R-HA6: a role without the right to make the day says which right it lacks', async () => {
    const role = `writer_${process.pid}`;
    await server().sql(`create role ${role} login password 'x'`);
    onTestFinished(async () => {
      await server().sql(`drop owned by ${role}`);
      await server().sql(`drop role ${role}`);
    });
    await server().sql(`grant usage on schema sluice to ${role}`);
    await server().sql(`grant all on all tables in schema sluice to ${role}`);
    await server().sql(`grant all on all sequences in schema sluice to ${role}`);
    const url = new URL(server().url);
    url.username = role;
    url.password = 'x';
    const engine = await openEngine({
      database: { kind: 'postgres', url: url.href },
      role: 'submit',
    });
    onTestFinished(() => engine.close());
    const draft = { taskType: 't', queue: freshQueue() };
    expect(await refusal(engine.submit(draft))).toBeNull();
    await dropPartitions(server(), 'task_inputs');
    await expect(engine.submit(draft)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/does not own the tables of the schema sluice/) as string,
    });
  });
});
