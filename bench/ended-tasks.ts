import type { Client } from 'pg';

/** Rows of one statement: it is one transaction, and what it sorts stays in memory. */
const chunk = 500_000;

/**
 * Ended tasks as days of work leave them: history and inputs of yesterday and before, with all their
 * indexes. Straight into the tables; to run them would take hours.
 */
export async function makeEnded(client: Client, count: number, days: number): Promise<void> {
  await client.query(`select sluice.ensure_partitions($1, now() - $1::int * interval '1 day')`, [
    days,
  ]);
  const perDay = Math.ceil(count / days);
  for (let day = 1; day <= days; day += 1) {
    for (let from = 0; from < perDay; from += chunk) {
      const to = Math.min(perDay, from + chunk) - 1;
      await client.query(makeEndedSql, [day, from, to, perDay]);
    }
  }
  await client.query('vacuum (analyze) sluice.task_history, sluice.task_inputs');
  await client.query('checkpoint');
}

/** Over the whole day, in the order of their ids, as they would have come. */
const makeEndedSql = `
with made as (
  select n, at,
    (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
      || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid as id
  from generate_series($2::bigint, $3::bigint) n,
    lateral (
      select date_trunc('day', now(), 'UTC') - $1::int * interval '1 day'
        + n * (interval '23 hours' / $4::int) as at
    ) clock
), inputs as (
  insert into sluice.task_inputs (task_id, parameters)
  select id, json_build_object('index', n, 'text', repeat('x', 100)) from made
)
insert into sluice.task_history
  (id, seq, queue, task_type, capabilities, priority, status, created_at, eligible_at, queued_at,
   assigned_at, started_at, ended_at, timeout_seconds, max_retries, retry_count, attempt, deferrals,
   returns, lease, worker_id, halts_workflow, tags, result, past_attempts)
select id, nextval('sluice.task_seq'), 'bench', 'noop', '{}', 1, 'completed', at, at, at, at, at,
  at + interval '1 minute', 600, 3, 0, 1, 0, 0, gen_random_uuid(), gen_random_uuid(), true, '{}',
  '{"ok":true}', '{}'
from made`;
