import { isDeepStrictEqual } from 'node:util';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { Client } from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';

import { counterNames, counterPositions, type CounterName } from '../../src/domain/counters.js';
import { createTestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { startTestWorker, TestServer } from './servers.js';

const countedTask = join(import.meta.dirname, 'fixtures/counted.mjs');
const slotMs = 5_000;
const tokens = 100;

/** Of these nothing can be read from rows that says how often they happened. */
type Counted = Exclude<CounterName, `${string}_ms` | 'reoffered' | 'rate_limited'>;
type Counts = Record<Counted, number>;

const countedNames = counterNames.filter(
  (name): name is Counted => !name.endsWith('_ms') && !['reoffered', 'rate_limited'].includes(name),
);

it('R-OB7: one of two servers is restarted in the middle of the flow: every count is what the rows say', async () => {
  const stand = await Stand.start();
  await stand.refuse();
  const flow = stand.flow();
  await stand.untilCompleted(100);
  await stand.first.restart('SIGTERM');
  await stand.untilCompleted(300);
  await flow.stop();
  await stand.untilEnded();
  // Both write what they counted before they end.
  await Promise.all([stand.first.stop(), stand.second.stop()]);
  const rows = await stand.rows();
  expect(rows.completed).toBeGreaterThan(300);
  expect(rows.retried).toBeGreaterThan(10);
  expect(rows.dead_letter).toBeGreaterThan(10);
  expect(rows.cancelled).toBe(10);
  expect(rows.refused).toBe(6);
  expect(await stand.stored()).toEqual(rows);

  await Promise.all([stand.first.begin(), stand.second.begin()]);
  expect(await stand.told(stand.first)).toEqual(rows);
  expect(await stand.told(stand.second)).toEqual(rows);
  await until('both to answer queue/stats alike', async () => {
    const [here, there] = await Promise.all([
      stand.first.api.getStatistics(),
      stand.second.api.getStatistics(),
    ]);
    return isDeepStrictEqual(here, there);
  });
});

it('R-OB7: after a SIGKILL at most what the server did since its last write is missing, and nothing is counted twice', async () => {
  const stand = await Stand.start();
  const flow = stand.flow();
  await stand.untilCompleted(100);
  await until('counts to be written', async () => (await stand.stored()).completed > 0);
  const writtenMs = await stand.firstWriteMs();
  await stand.first.restart('SIGKILL');
  const killedMs = await stand.nowMs();
  await stand.untilCompleted(300);
  await flow.stop();
  await stand.untilEnded();
  await Promise.all([stand.first.stop(), stand.second.stop()]);
  const [rows, stored] = [await stand.rows(), await stand.stored()];
  const missing = countedNames.map((name) => [name, rows[name] - stored[name]] as const);
  expect(missing.filter(([, count]) => count < 0)).toEqual([]);
  // A task ends in Postgres a moment before it is counted.
  const fromMs = writtenMs - (writtenMs % slotMs) - 2_000;
  const unwritten = await stand.between(fromMs, killedMs);
  expect(rows.submitted - stored.submitted).toBeLessThanOrEqual(unwritten.submitted);
  expect(rows.completed - stored.completed).toBeLessThanOrEqual(unwritten.completed);
  expect(rows.completed).toBeGreaterThan(unwritten.completed);
});

/** Two servers with Redis on a database of their own, and a worker at each. */
class Stand {
  readonly first: TestServer;
  readonly second: TestServer;
  readonly #db: Client;
  #refused = 0;

  private constructor(first: TestServer, second: TestServer, db: Client) {
    this.first = first;
    this.second = second;
    this.#db = db;
  }

  static async start(): Promise<Stand> {
    const { url, drop } = await createTestDatabase();
    onTestFinished(drop);
    const redisUrl = inject('redisUrl');
    const [first, second] = await Promise.all([
      TestServer.start(url, redisUrl),
      TestServer.start(url, redisUrl),
    ]);
    const db = new Client({ connectionString: url });
    await db.connect();
    onTestFinished(() => db.end());
    const worker = { module: countedTask, concurrency: 5 };
    await Promise.all([startTestWorker(first, worker), startTestWorker(second, worker)]);
    return new Stand(first, second, db);
  }

  /** Submits that are refused at each server, and tasks that are cancelled before they are due. */
  async refuse(): Promise<void> {
    await this.first.api.putQueue('full', { maxActive: 5 });
    await until('the other server to know of the queue', async () => {
      return (await this.second.api.getQueue('full')).settings.maxActive === 5;
    });
    const later = {
      taskType: 'later',
      queue: 'full',
      priority: 'high',
      delaySeconds: 3_600,
    } as const;
    for (const { api } of [this.first, this.second]) {
      const outcomes = await api.submitMany(Array.from({ length: 8 }, () => later));
      this.#refused += outcomes.filter(({ kind }) => kind === 'refused').length;
      for (const outcome of outcomes) {
        if (outcome.kind !== 'refused') await api.cancelTask(outcome.receipt.taskId);
      }
    }
  }

  /** Submits at both servers, as long as each answers. */
  flow(): { stop: () => Promise<void> } {
    let isOver = false;
    const submitAt = async ({ api }: TestServer, from: number) => {
      for (let n = from; !isOver; n += 20) {
        const drafts = Array.from({ length: 10 }, (_, index) => ({
          taskType: 'counted',
          parameters: { n: n + index },
          maxRetries: (n + index) % 10 === 2 ? 0 : 3,
          cost: { tokens },
        }));
        await api.submitMany(drafts).catch(() => delay(50));
        await delay(50);
      }
    };
    const submitting = Promise.all([submitAt(this.first, 0), submitAt(this.second, 10)]);
    return {
      stop: async () => {
        isOver = true;
        await submitting;
      },
    };
  }

  untilCompleted(count: number): Promise<unknown> {
    return until(`${count} tasks to complete`, async () => {
      const rows = await this.#sql<{ count: string }>(
        `select count(*) from sluice.task_history where status = 'completed'`,
      );
      return Number(rows[0]?.count) >= count;
    });
  }

  untilEnded(): Promise<unknown> {
    return until('every task to end', async () => {
      const rows = await this.#sql<{ count: string }>(
        `select count(*) from sluice.tasks where status <> 'dead_letter'`,
      );
      return Number(rows[0]?.count) === 0;
    });
  }

  /** How often each thing happened, as the tasks and their attempts say. */
  async rows(): Promise<Counts> {
    const [row] = await this.#sql<Record<string, string>>(
      `with task as (
         select status, attempt, cost, null::json as usage, past_attempts from sluice.tasks
         union all
         select status, attempt, cost, usage, past_attempts from sluice.task_history
       ), past as (
         select past->>'outcome' as outcome, past->'error'->>'code' as code, (cost->>'tokens')::int as tokens
         from task, unnest(past_attempts) as past
       )
       select count(*) as submitted, sum(attempt) as started,
         count(*) filter (where status = 'completed') as completed,
         count(*) filter (where status = 'dead_letter') as dead_letter,
         count(*) filter (where status = 'cancelled') as cancelled,
         count(*) filter (where status = 'failed') as expired,
         coalesce(sum(attempt * (cost->>'tokens')::int), 0) as tokens_reserved,
         coalesce(sum(coalesce(usage->>'tokens', cost->>'tokens')::int)
           filter (where status = 'completed'), 0)
           + (select coalesce(sum(tokens), 0) from past) as tokens_used,
         (select count(*) from past where outcome in ('failed', 'timed_out', 'lapsed')) as failed,
         (select count(*) from past where outcome = 'lapsed') as lapsed,
         (select count(*) from past where outcome = 'timed_out') as timed_out,
         (select count(*) from past where outcome = 'released') as released,
         (select count(*) from past where outcome = 'deferred') as deferred,
         (select count(*) from past where code = 'NEVER_STARTED') as never_started
       from task`,
    );
    const count = (name: string) => Number(row?.[name] ?? Number.NaN);
    const found = Object.fromEntries(countedNames.map((name) => [name, count(name)])) as Counts;
    const retried = found.failed - found.dead_letter;
    return { ...found, retried, refused: this.#refused, idempotency_conflict: 0 };
  }

  /** What both servers wrote. */
  async stored(): Promise<Counts> {
    const sums = countedNames.map(
      (name) => `coalesce(sum(counts[${counterPositions[name] + 1}]), 0)::int as ${name}`,
    );
    const [row] = await this.#sql<Counts>(
      `select ${sums.join(', ')} from sluice.counters where queue = ''`,
    );
    if (row === undefined) throw new Error('a sum is one row');
    return row;
  }

  /** What a server says of the last hour. */
  async told({ api }: TestServer): Promise<Counts> {
    const { values } = await api.getSeries({ metrics: countedNames });
    const sums = countedNames.map((name) => [
      name,
      (values[name] ?? []).reduce((sum: number, value) => sum + (value ?? 0), 0),
    ]);
    return Object.fromEntries(sums) as Counts;
  }

  /** When the counts were written last by the server that wrote least lately. */
  async firstWriteMs(): Promise<number> {
    const [row] = await this.#sql<{ ms: number }>(
      `select extract(epoch from min(written_at))::float8 * 1000 as ms from sluice.counting_processes`,
    );
    return row?.ms ?? 0;
  }

  async nowMs(): Promise<number> {
    const [row] = await this.#sql<{ ms: number }>(
      'select extract(epoch from now())::float8 * 1000 as ms',
    );
    return row?.ms ?? 0;
  }

  async between(fromMs: number, toMs: number): Promise<{ submitted: number; completed: number }> {
    const [row] = await this.#sql<{ submitted: number; completed: number }>(
      `with task as (
         select created_at, null::timestamptz as ended_at from sluice.tasks
         union all
         select created_at, ended_at from sluice.task_history where status = 'completed'
       )
       select count(*) filter (where created_at between $1 and $2)::int as submitted,
         count(*) filter (where ended_at between $1 and $2)::int as completed
       from task`,
      [new Date(fromMs), new Date(toMs)],
    );
    return row ?? { submitted: 0, completed: 0 };
  }

  async #sql<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.#db.query<Row>(text, values)).rows;
  }
}
