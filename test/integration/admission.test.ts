import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';

import { SluiceError } from '../../src/domain/errors.js';
import type { TaskId } from '../../src/domain/ids.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { anybody } from '../../src/protocol/caller.js';
import type { SubmitOutcome, TaskDraft } from '../../src/protocol/tasks-api.js';
import { serve } from '../../src/server/serve.js';
import { freshPglite } from '../support/pglite.js';
import { until } from '../support/until.js';
import { describeOnPostgres, drafts, quickTicks, TestWorker, untilStatus } from './support.js';

const high: TaskDraft = { taskType: 'noop', queue: 'door', priority: 'high' };

interface Answer {
  readonly status: number;
  readonly taskId: TaskId | null;
  readonly retryAfter: number | null;
}

async function submitTo(engine: Engine, draft: TaskDraft): Promise<Answer> {
  try {
    const { taskId } = await engine.submit(draft);
    return { status: 201, taskId, retryAfter: null };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    expect(error.ceiling).toMatchObject({ queue: null });
    return { status: error.status, taskId: null, retryAfter: error.retryAfterSeconds };
  }
}

async function postTo(url: string, { taskType, queue, priority }: TaskDraft): Promise<Answer> {
  const response = await fetch(`${url}/api/v1/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ task_type: taskType, queue, priority }),
  });
  const body = (await response.json()) as Record<string, unknown>;
  if (response.status === 429) {
    expect(body).toMatchObject({ code: 'refused', ceiling: { queue: null } });
    expect(Number(response.headers.get('retry-after'))).toBe(body.retry_after_seconds);
  }
  return {
    status: response.status,
    taskId: (body.task_id ?? null) as TaskId | null,
    retryAfter: (body.retry_after_seconds ?? null) as number | null,
  };
}

const accepted = (outcomes: readonly SubmitOutcome[]) =>
  outcomes.filter(({ kind }) => kind === 'accepted').length;

describeOnPostgres('the ceiling over two servers', (server) => {
  const redisUrl = () => inject('redisUrl');

  it('R-AD1: 100 submits at once, 15 places: 15 are accepted, wait, run three at a time, and leave room', async () => {
    const settings = { ...quickTicks, maxActive: 15 };
    const here = await server().open({ redisUrl: redisUrl(), settings });
    const there = await serve({
      host: '127.0.0.1',
      port: 0,
      database: { kind: 'postgres', url: server().url },
      redisUrl: redisUrl(),
      settings,
    });
    onTestFinished(() => there.close());

    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        n % 2 === 0 ? submitTo(here, high) : postTo(there.url, high),
      ),
    );
    const taskIds = answers.flatMap(({ taskId }) => taskId ?? []);
    const refused = answers.filter(({ status }) => status === 429);
    expect([taskIds.length, refused.length]).toEqual([15, 85]);
    for (const { retryAfter } of refused) expect(retryAfter).toBeGreaterThanOrEqual(1);
    expect((await there.engine.getStatistics()).admission).toEqual({ active: 15, maxActive: 15 });
    for (const taskId of taskIds) {
      expect(['queued', 'pending']).toContain((await here.getTask(taskId)).status);
    }

    let running = 0;
    let most = 0;
    let left = taskIds.length;
    const work = async (engine: Engine) => {
      const worker = await TestWorker.register(engine, { capacity: 1, queues: ['door'] });
      while (left > 0) {
        const [task] = await worker.look(1, { waitMs: 200 });
        if (task === undefined) continue;
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        left -= 1;
        await worker.complete(task);
      }
    };
    await Promise.all([work(here), work(there.engine), work(here)]);
    expect(most).toBeLessThanOrEqual(3);
    for (const taskId of taskIds) await untilStatus(here, taskId, 'completed');

    const again = await here.submitMany(drafts(20, high), anybody);
    expect(accepted(again)).toBe(15);
    await here.cancelTasks({ queue: 'door' });
    expect((await here.getStatistics()).admission.active).toBe(0);
  });

  it('R-AD2: with 100 places, low is refused from 80, medium from 90, high from 100', async () => {
    const settings = { ...quickTicks, maxActive: 100 };
    const engines = await Promise.all([
      server().open({ redisUrl: redisUrl(), settings }),
      server().open({ redisUrl: redisUrl(), settings }),
    ]);
    const sendAll = async (priority: 'low' | 'medium' | 'high') => {
      const outcomes = await Promise.all(
        engines.map((engine) => engine.submitMany(drafts(60, { ...high, priority }), anybody)),
      );
      return accepted(outcomes.flat());
    };
    expect([await sendAll('low'), await sendAll('medium'), await sendAll('high')]).toEqual([
      80, 10, 10,
    ]);
    // Until then a refusal may be of what was known when low was refused first.
    await until('a refusal that knows of all', async () => {
      const [refused] = await engines[0].submitMany([{ ...high, priority: 'low' }], anybody);
      expect(refused).toMatchObject({
        kind: 'refused',
        code: 'refused',
        ceiling: { queue: null, limit: 80 },
      });
      return refused?.kind === 'refused' && refused.ceiling?.active === 100;
    });
    await engines[0].cancelTasks({ queue: 'door' });
  });

  it('R-AD1: a count that is wrong is put right while the server runs', async () => {
    const engine = await server().open({
      settings: { ...quickTicks, maxActive: 5, admissionCheckMs: 50 },
    });
    const active = async () => {
      const [row] = await server().sql<{ active: string }>(
        `select admitted - sluice.ended_in('') as active
         from sluice.admission where scope = '' order by epoch desc limit 1`,
      );
      return Number(row?.active);
    };
    await until('nothing to be active', async () => (await active()) === 0);
    await server().sql(`update sluice.admission set admitted = admitted + 5 where scope = ''`);
    await until('it to be right', async () => (await active()) === 0);
    await engine.submit(high);
    expect(await active()).toBe(1);
    await engine.cancelTasks({ queue: 'door' });
  });

  it('R-AD1: a count that somebody holds while it is compared is put right', async () => {
    await server().sql(`update sluice.admission set admitted = admitted + 5 where scope = ''`);
    await server().sql(`update sluice.admission_check set checked_at = '-infinity'`);
    const held = server().sql(
      `with held as (update sluice.admission set writes = writes where scope = '' returning scope)
       select pg_sleep(1) from held`,
    );
    const engine = await server().open({
      settings: { ...quickTicks, maxActive: 5, admissionCheckMs: 3_600_000 },
    });
    await held;
    await until(
      'it to be right',
      async () => (await engine.getStatistics()).admission.active === 0,
    );
  });
});

describe('the ceiling on PGlite', () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await openEngine({
      database: freshPglite(),
      random: () => 0,
      settings: { ...quickTicks, maxActive: 10 },
    });
  });
  afterAll(() => engine.close());

  it('R-AD1, R-AD3: refuses item by item, and neither reads nor repeats', async () => {
    const keyed = drafts(12, high).map((draft, n) => ({ ...draft, idempotencyKey: `k${n}` }));
    const outcomes = await engine.submitMany(keyed, anybody);
    expect(accepted(outcomes)).toBe(10);
    expect(outcomes[11]).toMatchObject({
      code: 'refused',
      detail: expect.stringContaining('10 tasks are active in all queues together') as string,
      retryAfterSeconds: 5,
    });
    const again = await engine.submitMany(keyed.slice(0, 10), anybody);
    expect(again.every((one) => one.kind === 'accepted' && !one.receipt.created)).toBe(true);
    expect((await engine.listTasks({ queue: 'door' }, {})).items).toHaveLength(10);
    expect(engine.refused()).toMatchObject({ max_active: 2, queue_max_active: 0 });
  });

  it('R-AD2: a marked key passes, a replay is not refused, and both are counted', async () => {
    const passing = await engine.submit(high, {
      ...anybody,
      owner: 'marked',
      passesCeilings: true,
    });
    await engine.cancelTask(passing.taskId);
    await expect(engine.submit(high)).rejects.toMatchObject({ code: 'refused' });
    await engine.replayTask(passing.taskId, {});
    expect((await engine.getStatistics()).admission).toEqual({ active: 11, maxActive: 10 });
    await engine.cancelTasks({ queue: 'door' });
  });

  it('R-AD1: max_active of a queue counts from the PUT on, and only for that queue', async () => {
    await engine.submit({ ...high, queue: 'small' });
    const queue = await engine.putQueue('small', { maxActive: 3 });
    expect(queue.live.active).toBe(1);
    const outcomes = await engine.submitMany(
      [...drafts(4, { ...high, queue: 'small' }), ...drafts(2, high)],
      anybody,
    );
    expect(outcomes.map(({ kind }) => kind)).toEqual([
      ...['accepted', 'accepted', 'refused', 'refused'],
      ...['accepted', 'accepted'],
    ]);
    expect(outcomes[2]).toMatchObject({ ceiling: { queue: 'small', limit: 3, active: 3 } });
    expect((await engine.getQueue('small')).live.active).toBe(3);
    await engine.putQueue('small', {});
    expect((await engine.getQueue('small')).live.active).toBeNull();
    expect(accepted(await engine.submitMany(drafts(2, { ...high, queue: 'small' }), anybody))).toBe(
      2,
    );
  });
});
