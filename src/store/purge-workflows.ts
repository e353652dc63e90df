import type { Database } from './database.js';

export interface PurgedWorkflows {
  readonly purged: number;
  /** Null: the lap is done. */
  readonly next: string | null;
}

/**
 * A lap over the rows of workflows, `limit` a call: those without a member in line and without a
 * place that is kept go. Whoever submits to one makes its row again.
 */
export async function purgeWorkflows(
  db: Database,
  after: string | null,
  limit: number,
): Promise<PurgedWorkflows> {
  const walked = await db.query<{ id: string; idle: boolean }>(walkSql, [after, limit]);
  const next = (walked.length < limit ? undefined : walked.at(-1)?.id) ?? null;
  const idle = walked.filter((row) => row.idle).map((row) => row.id);
  if (idle.length === 0) return { purged: 0, next };
  const gone = await db.transaction(async (tx) => {
    const locked = await tx.query<{ id: string }>(
      'select id from sluice.workflows where id = any($1::text[]) for update skip locked',
      [idle],
    );
    // A statement of its own after the lock: an earlier snapshot could miss a member.
    return tx.query(
      `delete from sluice.workflows w
       where id = any($1::text[]) and held_task is null and not ${hasMember} returning id`,
      [locked.map((row) => row.id)],
    );
  });
  return { purged: gone.length, next };
}

/** Index: tasks_workflow_line. */
const hasMember = `exists (
  select from sluice.tasks t
  where t.workflow_id = w.id and (t.status not in ('dead_letter', 'failed') or t.halts_workflow)
)`;

const walkSql = `
select w.id, w.held_task is null and not ${hasMember} as idle
from (
  select id, held_task from sluice.workflows
  where id > coalesce($1::text, '') order by id limit $2
) w
order by w.id`;
