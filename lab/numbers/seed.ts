import type { LabDatabase } from '../shared/database.js';

/** Rows of one statement. */
const chunk = 200_000;

/** Queued tasks of the last hour, as submits leave them: with inputs, rows of their queues and the count of active ones. */
export async function seedQueued(
  database: LabDatabase,
  queues: number,
  tasks: number,
): Promise<void> {
  await database.query(`select sluice.ensure_partitions(2, now())`);
  for (let from = 0; from < tasks; from += chunk) {
    const to = Math.min(tasks, from + chunk) - 1;
    await database.query(seedSql, [from, to, tasks, queues]);
  }
  await database.query(
    `insert into sluice.queues (name, version) select 'queue-' || n, 0 from generate_series(0, $1 - 1) n`,
    [queues],
  );
  await database.query(`update sluice.admission set admitted = $1 where scope = ''`, [tasks]);
  await database.query('vacuum (analyze) sluice.tasks, sluice.task_inputs');
}

const seedSql = `
with made as (
  select n, at,
    (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
      || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid as id
  from generate_series($1::bigint, $2::bigint) n,
    lateral (select now() - interval '1 hour' + n * (interval '1 hour' / $3::int) as at) clock
), inputs as (
  insert into sluice.task_inputs (task_id, parameters) select id, json_build_object('n', n) from made
)
insert into sluice.tasks
  (id, queue, task_type, priority, status, created_at, eligible_at, queued_at, timeout_seconds, max_retries)
select id, 'queue-' || n % $4::int, 'noop', n % 3, 'queued', at, at, at, 600, 3 from made`;
