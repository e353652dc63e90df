import { describe, expect, it } from 'vitest';

import type { TaskId } from '../../src/domain/ids.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import type { TaskEvent } from '../../src/protocol/events.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { checkServeConfig } from '../../src/runtime/config.js';
import { freshPglite } from '../support/pglite.js';
import { until } from '../support/until.js';
import {
  describeOnPostgres,
  drafts,
  freshQueue,
  quickTicks,
  refusal,
  submitAll,
  TestWorker,
  untilStatus,
  type TestServer,
} from './support.js';

const quickly = { settings: { retentionIntervalMs: 30 } };
const dayMs = 24 * 3_600_000;
const hopeless = { code: 'INVALID_INPUT', message: 'no such thing' };

async function gone(engine: Engine, taskId: TaskId): Promise<boolean> {
  return (await refusal(engine.getTask(taskId))) === 'task_not_found';
}

/** As if what ended had ended so long ago. */
async function age(server: TestServer, queue: string, days: number): Promise<void> {
  await server.sql(
    `update sluice.tasks set ended_at = ended_at - $2 * interval '1 day'
     where queue = $1 and ended_at is not null`,
    [queue, days],
  );
}

async function tables(server: TestServer, like: string): Promise<number> {
  const rows = await server.sql(
    `select from pg_class where relnamespace = 'sluice'::regnamespace and relkind = 'r'
       and relname like $1`,
    [like],
  );
  return rows.length;
}

describeOnPostgres('retention', (server) => {
  it('R-ST6: a dead letter goes after 30 days, and those behind it are told why', async () => {
    const engine = await server().open(quickly);
    const told: TaskEvent[] = [];
    engine.subscribe((event) => told.push(event));
    const queue = freshQueue();
    const workflowId = 'halted';
    const draft = { taskType: 'member', queue, workflowId };
    const [first, ...behind] = await submitAll(engine, drafts(3, draft));
    if (first === undefined) throw new Error('three were submitted');
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await worker.fail(await worker.takeOne(), hopeless);
    await age(server(), queue, 29);
    const alone = await engine.submit({ taskType: 'alone', queue });
    await worker.fail(await worker.takeOne(), hopeless);
    await age(server(), queue, 1.5);

    await until('the dead letter to be purged', () => gone(engine, first));
    expect(await gone(engine, alone.taskId)).toBe(false);
    for (const taskId of behind) {
      const task = await engine.getTask(taskId, { history: true });
      expect(task.status).toBe('cancelled');
      expect(task.parameters).toHaveProperty('index');
      expect(task.error?.message).toContain(first);
      const event = await until('it to be told', () =>
        told.find((one) => one.taskId === taskId && one.to === 'cancelled'),
      );
      expect(event.reason).toContain('30 days');
    }
    expect(await refusal(engine.replayTask(first))).toBe('task_not_found');
    await until('the row of the workflow to go', async () => {
      const rows = await server().sql('select from sluice.workflows where id = $1', [workflowId]);
      return rows.length === 0;
    });
    const again = await engine.submit(draft);
    expect(await worker.takeOne()).toMatchObject({ taskId: again.taskId });
  });

  it('R-ST6: failed counts as ended: 7 days', async () => {
    const engine = await server().open(quickly);
    const queue = freshQueue();
    const { taskId } = await engine.submit({ taskType: 't', queue, dispatchDeadlineSeconds: 1 });
    await untilStatus(engine, taskId, 'failed');
    await age(server(), queue, 6.9);
    expect((await engine.getTask(taskId)).status).toBe('failed');
    await age(server(), queue, 0.2);
    await until('it to be purged', () => gone(engine, taskId));
  });

  it('R-ST6: days are dropped while a reader stays open and the living go on', async () => {
    await server()
      .open({ ...quickly, role: 'submit' })
      .then((engine) => engine.close());
    await server().sql(`select sluice.ensure_partitions(0, now() - interval '20 days')`);
    const old = (
      await server().sql<{ name: string }>(
        `select to_char(now() at time zone 'UTC' - interval '21 days', 'YYYYMMDD') as name`,
      )
    )[0]?.name;
    const reader = await server().connect();
    await reader.query('begin');
    await reader.query('select count(*) from sluice.task_history');
    const engine = await server().open(quickly);
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    for (let round = 0; round < 10; round += 1) {
      await submitAll(engine, drafts(20, { taskType: 'work', queue }));
      await worker.completeAll(await worker.take(20));
    }
    expect(await tables(server(), `task_history_${old ?? ''}`)).toBe(1);
    await reader.query('commit');
    await until('the days to be gone', async () => {
      return (await tables(server(), `task_%_${old ?? ''}`)) === 0;
    });
    const page = await engine.listTasks({ queue, status: 'completed' }, { limit: 1_000 });
    expect(page.items).toHaveLength(200);
  });

  it('R-HA6: a task that is due in months does not keep the inputs of its day', async () => {
    const engine = await server().open(quickly);
    const queue = freshQueue();
    const parameters = { text: 'the far one' };
    const { taskId } = await engine.submit({
      taskType: 't',
      queue,
      delaySeconds: 86_400,
      parameters,
    });
    const old = await moveToPast(taskId, 1, 2_000);
    await until('the inputs of the others to be gone', async () => {
      const rows = await server().sql(
        `select from sluice.task_inputs where tableoid = 'sluice.task_inputs_20200101'::regclass`,
      );
      return rows.length === 1;
    });
    expect((await engine.getTask(old)).parameters).toEqual(parameters);
    await engine.cancelTask(old);
  });

  /** As if it had been submitted in 2020, with so many others that are purged; answers with its id then. */
  async function moveToPast(taskId: TaskId, kilobytes: number, others: number): Promise<TaskId> {
    const [day] = await server().sql<{ id: TaskId }>(
      `with moved as (
         update sluice.tasks set id = '016f5e66-e800-7000-8000-000000000000' where id = $1
         returning id
       ), made as (select sluice.ensure_inputs_of('2020-01-01'))
       select moved.id from moved, made`,
      [taskId],
    );
    if (day === undefined) throw new Error('the task was submitted');
    await server().sql(
      `insert into sluice.task_inputs
       select $2, parameters from sluice.task_inputs where task_id = $1
       union all
       select ('016f5e66-e801-7000-8000-' || lpad(n::text, 12, '0'))::uuid,
         to_json((select string_agg(md5(random()::text || n || m), '')
                  from generate_series(1, 32 * $3::int) m))
       from generate_series(1, $4::int) n`,
      [taskId, day.id, kilobytes, others],
    );
    return day.id;
  }

  it('R-RE3: the sweep goes on while a day is dropped, however long that takes', async () => {
    const engine = await server().open(quickly);
    await server().sql('alter function sluice.drop_detached rename to drop_at_once');
    await server().sql(
      `create function sluice.drop_detached(parent text, day date) returns boolean
       language sql as 'select pg_sleep(600) is null'`,
    );
    await server().sql(`select sluice.ensure_partitions(0, now() - interval '20 days')`);
    const dropping = () =>
      server().sql<{ pid: number; since: string }>(
        `select pid, query_start::text as since from pg_stat_activity
         where datname = current_database() and wait_event = 'PgSleep'
           and query like 'select sluice.drop_detached%'`,
      );
    try {
      const began = await until('a day to be dropped', async () => (await dropping()).at(0));
      const task = { taskType: 't', queue: freshQueue(), dispatchDeadlineSeconds: 1 };
      await untilStatus(engine, (await engine.submit(task)).taskId, 'failed');
      expect(await dropping()).toEqual([began]);
    } finally {
      await server().sql('drop function sluice.drop_detached');
      await server().sql('alter function sluice.drop_at_once rename to drop_detached');
      for (const { pid } of await dropping()) {
        await server().sql('select pg_cancel_backend($1)', [pid]);
      }
    }
  });

  it('a process that only submits purges nothing: it may have other settings', async () => {
    const engine = await server().open(quickly);
    const { queue, taskId } = await deadLetter(engine);
    await engine.close();
    await server().sql('delete from sluice.serving');
    await age(server(), queue, 31);
    const submits = await server().open({ ...quickly, role: 'submit' });
    await submits.submit({ taskType: 't', queue });
    expect((await submits.getTask(taskId)).status).toBe('dead_letter');
  });

  it('R-ST6: a task that is kept has its parameters; without them it is not run again', async () => {
    const engine = await server().open();
    const { taskId } = await engine.submit({ taskType: 't', parameters: { n: 1 } });
    await engine.cancelTask(taskId);
    expect((await engine.getTask(taskId)).parameters).toEqual({ n: 1 });
    await server().sql('delete from sluice.task_inputs where task_id = $1', [taskId]);
    expect((await engine.getTask(taskId)).parameters).toEqual({});
    expect(await refusal(engine.replayTask(taskId))).toBe('task_not_found');
  });

  it('R-ST4: a key whose task is gone still answers with it', async () => {
    const engine = await server().open();
    const draft = { taskType: 't', queue: freshQueue(), idempotencyKey: 'gone' };
    const { taskId } = await engine.submit(draft);
    await server().sql('delete from sluice.tasks where id = $1', [taskId]);
    expect(await engine.submit(draft)).toMatchObject({ taskId, created: false });
  });
});

describe('retention on PGlite', () => {
  it('R-ST6: what ended long ago goes, history, dead letters and all', async () => {
    const clock = new ManualClock(Date.now());
    const settings = { ...quickTicks, ...quickly.settings };
    const engine = await openEngine({ database: freshPglite(), clock, settings });
    try {
      const dead = await deadLetter(engine);
      const { taskId } = await engine.submit({ taskType: 't', queue: freshQueue() });
      await engine.cancelTask(taskId);
      clock.advance(9 * dayMs);
      await until('the cancelled one to be gone', () => gone(engine, taskId));
      expect((await engine.getTask(dead.taskId)).status).toBe('dead_letter');
      clock.advance(22 * dayMs);
      await until('the dead letter to be gone', () => gone(engine, dead.taskId));
    } finally {
      await engine.close();
    }
  });
});

describeOnPostgres('retention settings', (server) => {
  it.each(['retainEndedDays', 'retainDeadLettersDays'])('%s is checked', async (name) => {
    for (const days of [0, -1]) {
      const opening = server().open({ settings: { [name]: days } });
      await expect(opening).rejects.toThrow(`${name} must be`);
    }
    const sources = { flags: { [name]: '0' }, env: {}, file: null };
    expect(checkServeConfig(sources)).toMatchObject({
      kind: 'invalid',
      problems: [expect.stringContaining('must be a whole number from 1 to 36500, not "0"')],
    });
  });
});

async function deadLetter(engine: Engine): Promise<{ queue: string; taskId: TaskId }> {
  const queue = freshQueue();
  const { taskId } = await engine.submit({ taskType: 'bad', queue });
  const worker = await TestWorker.register(engine, { queues: [queue] });
  await worker.fail(await worker.takeOne(), hopeless);
  return { queue, taskId };
}
