import type { TaskId } from '../domain/ids.js';
import type { Instant, Queryable } from './database.js';

export interface ReleasedHead {
  readonly taskId: TaskId;
  readonly workflowId: string;
  /** Its time has come. */
  readonly isDue: boolean;
}

/**
 * Inserts what is missing and locks what is there, in one pass and in the order of the ids, by their
 * bytes as everybody does, so that no two wait for each other. "where false" locks a row without
 * writing it.
 */
const lockWorkflowsSql = `
insert into sluice.workflows (id)
select distinct id collate "C" from unnest($1::text[]) as id order by 1
on conflict (id) do update set id = excluded.id where false`;

/**
 * To be held while a member is inserted or ends, and followed by `releaseHeads`: a submit that still
 * sees its predecessor, and a finish that does not yet see the submit, would leave it blocked for ever.
 */
export async function lockWorkflows(tx: Queryable, workflowIds: readonly string[]): Promise<void> {
  await tx.query(lockWorkflowsSql, [workflowIds]);
}

/**
 * The first living member of each workflow, if it waits for its turn and need not wait longer. One
 * that ended badly holds up those behind it unless it was submitted to let them go on.
 * No row is locked: the workflow's lock keeps everybody from ending or letting go a member, and a
 * locked head would be refused to whoever claims it. Indexes: tasks_workflow_one_out, then the first
 * entry in tasks_workflow_line.
 */
const findHeadsSql = `
select head.id
from
  (select distinct id from unnest($1::text[]) as id) as workflow,
  lateral (
    select id, waits_for
    from sluice.tasks member
    where member.workflow_id = workflow.id
      and (member.status not in ('dead_letter', 'failed') or member.halts_workflow)
    order by seq
    limit 1
  ) as head
where head.waits_for = 'workflow'
  -- A replayed member may be in front of one that is already out.
  and (
    select count(*) from sluice.tasks other
    where other.workflow_id = workflow.id
      and (other.status in ('queued', 'assigned', 'executing') or other.waits_for = 'time')
  ) = 0
  -- A worker may still be at a member that was cancelled: see hold-workflows.
  and (select held_task from sluice.workflows where id = workflow.id) is null`;

/** Whatever let it go, and in whichever process: who serves finds what is due. */
const releaseHeadsSql = `
update sluice.tasks task
set
  waits_for = 'time',
  run_at = coalesce(task.run_at, clock.now),
  eligible_at = greatest(clock.now, task.run_at),
  expires_at = greatest(clock.now, task.run_at)
    + task.dispatch_deadline_seconds * interval '1 second'
from (select coalesce($2::timestamptz, now()) as now) as clock
where task.id = any($1::uuid[]) and task.waits_for = 'workflow'
returning task.id, task.workflow_id, task.run_at <= clock.now as is_due`;

interface ReleasedRow {
  readonly id: TaskId;
  readonly workflow_id: string;
  readonly is_due: boolean;
}

/** Statements of their own after the lock: an earlier snapshot could miss a member. */
export async function releaseHeads(
  tx: Queryable,
  workflowIds: readonly string[],
  now: Instant,
): Promise<ReleasedHead[]> {
  const heads = await tx.query<{ id: TaskId }>(findHeadsSql, [workflowIds]);
  if (heads.length === 0) return [];
  const taskIds = heads.map((head) => head.id);
  const rows = await tx.query<ReleasedRow>(releaseHeadsSql, [taskIds, now]);
  return rows.map((row) => ({
    taskId: row.id,
    workflowId: row.workflow_id,
    isDue: row.is_due,
  }));
}
