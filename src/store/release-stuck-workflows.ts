import type { Database, Instant } from './database.js';
import { lockWorkflows, releaseHeads } from './release-heads.js';

export interface StuckWorkflows {
  /** How many heads were released. */
  readonly released: number;
  /** Null: the lap is done. */
  readonly next: string | null;
}

/**
 * A lap over the workflows that have living members, `limit` a call: whose first member waits for
 * a turn that nobody will give it is let go. Only a crash of ours can leave one, so that the lap
 * may take its time.
 */
export async function releaseStuckWorkflows(
  db: Database,
  after: string | null,
  limit: number,
  now: Instant,
): Promise<StuckWorkflows> {
  const walked = await db.query<{ workflow_id: string; stuck: boolean }>(walkStatement, [
    after,
    limit,
  ]);
  const next = (walked.length < limit ? undefined : walked.at(-1)?.workflow_id) ?? null;
  const stuck = walked.filter((row) => row.stuck).map((row) => row.workflow_id);
  if (stuck.length === 0) return { released: 0, next };
  const released = await db.transaction(async (tx) => {
    await lockWorkflows(tx, stuck);
    return releaseHeads(tx, stuck, now);
  });
  return { released: released.length, next };
}

// A loose scan of tasks_workflow_line: one probe for each workflow, not a read of all its members.
const walkStatement = `
  with recursive walked as (
    (
      select workflow_id, 1 as n from sluice.tasks
      where workflow_id > coalesce($1::text, '')
        and (status not in ('dead_letter', 'failed') or halts_workflow)
      order by workflow_id limit 1
    )
    union all
    select following.workflow_id, walked.n + 1
    from walked cross join lateral (
      select t.workflow_id from sluice.tasks t
      where t.workflow_id > walked.workflow_id
        and (t.status not in ('dead_letter', 'failed') or t.halts_workflow)
      order by t.workflow_id limit 1
    ) following
    where walked.n < $2::int
  )
  select walked.workflow_id, coalesce(head.waits_for = 'workflow', false) as stuck
  from walked left join lateral (
    select t.waits_for from sluice.tasks t
    where t.workflow_id = walked.workflow_id
      and (t.status not in ('dead_letter', 'failed') or t.halts_workflow)
    order by t.seq limit 1
  ) head on true
  order by walked.n`;
