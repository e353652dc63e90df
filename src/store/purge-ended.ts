import { attemptErrorCodes, type AttemptError } from '../domain/attempt-error.js';
import type { TaskId } from '../domain/ids.js';
import { cancelWithin, countCancelled, type CancelledRow } from './cancel-tasks.js';
import type { Database, Instant, Queryable } from './database.js';
import { withPartitions } from './partitions.js';
import { lockWorkflows, releaseHeads } from './release-heads.js';

/** For how many days what ended among the living stays there. */
export interface KeptDays {
  readonly failed: number;
  readonly deadLetter: number;
}

/** An ended member that those behind it in its workflow wait for. */
export interface HaltingRow {
  readonly taskId: TaskId;
  readonly seq: number;
  readonly status: 'dead_letter' | 'failed';
  readonly workflowId: string;
}

export interface Purgeable {
  readonly ordinary: readonly TaskId[];
  readonly halting: readonly HaltingRow[];
}

/** What is taken for little would be read and sorted as a whole, however much there is. */
const inOrderOfIndex = 'set local enable_bitmapscan = off; set local enable_sort = off';

const isOver = `
  case status
    when 'failed' then ended_at <= coalesce($1::timestamptz, now()) - $2::float8 * interval '1 day'
    when 'dead_letter' then
      ended_at <= coalesce($1::timestamptz, now()) - $3::float8 * interval '1 day'
    else false
  end`;

/** Index: tasks_purgeable, the first entries of each state. */
const findPurgeableSql = `
select * from (
  (
    select id, seq, status, workflow_id, halts_workflow, ended_at from sluice.tasks
    where status = 'failed'
      and ended_at <= coalesce($1::timestamptz, now()) - $2::float8 * interval '1 day'
    order by ended_at limit $4
  )
  union all
  (
    select id, seq, status, workflow_id, halts_workflow, ended_at from sluice.tasks
    where status = 'dead_letter'
      and ended_at <= coalesce($1::timestamptz, now()) - $3::float8 * interval '1 day'
    order by ended_at limit $4
  )
) ended
order by ended_at
limit $4`;

interface EndedRow {
  readonly id: TaskId;
  readonly seq: number;
  readonly status: 'dead_letter' | 'failed';
  readonly workflow_id: string | null;
  readonly halts_workflow: boolean;
}

/** Dead letters and failed tasks that ended too long ago, the oldest first. */
export async function findPurgeable(
  db: Database,
  kept: KeptDays,
  limit: number,
  now: Instant,
): Promise<Purgeable> {
  const rows = await db.transaction(async (tx) => {
    await tx.run(inOrderOfIndex);
    const parameters = [now, kept.failed, kept.deadLetter, limit];
    return tx.query<EndedRow>(findPurgeableSql, parameters);
  });
  const halting = rows.flatMap(({ id, seq, status, workflow_id, halts_workflow }) =>
    workflow_id === null || !halts_workflow
      ? []
      : { taskId: id, seq, status, workflowId: workflow_id },
  );
  const isHalting = new Set(halting.map((row) => row.taskId));
  return { ordinary: rows.map((row) => row.id).filter((id) => !isHalting.has(id)), halting };
}

/** How many went. Whoever was replayed meanwhile stays; what somebody holds is left for later. */
export async function purgeEnded(
  db: Queryable,
  taskIds: readonly TaskId[],
  kept: KeptDays,
  now: Instant,
): Promise<number> {
  if (taskIds.length === 0) return 0;
  const gone = await db.query(
    `with gone as (
       delete from sluice.tasks
       where ctid = any(array(
         select ctid from sluice.tasks where id = any($4::uuid[]) and ${isOver}
         for update skip locked
       ))
       returning id, status
     ), noted as (
       insert into sluice.dead_letter_changes (task_id)
       select id from gone where status = 'dead_letter'
     )
     select id from gone`,
    [now, kept.failed, kept.deadLetter, taskIds],
  );
  return gone.length;
}

export interface GivenUp {
  readonly purged: number;
  readonly cancelled: readonly CancelledRow[];
  readonly why: string;
}

/**
 * Nobody replayed or cancelled it for so long: those behind it are cancelled, and then it goes. It
 * goes last, so that a workflow of any length is given up in bounded steps and lets nobody run
 * meanwhile.
 */
export function giveUpWorkflow(
  db: Database,
  halting: HaltingRow,
  kept: KeptDays,
  limit: number,
  now: Instant,
): Promise<GivenUp> {
  const { taskId, workflowId, seq } = halting;
  const error = reasonOf(halting, kept);
  const why = error.message;
  const giveUp = async (tx: Queryable): Promise<GivenUp> => {
    await lockWorkflows(tx, [workflowId]);
    if (!(await isStillOver(tx, taskId, kept, now))) return { purged: 0, cancelled: [], why };
    const behind = await findBehind(tx, workflowId, seq, limit);
    const cancelled = behind.length === 0 ? [] : await cancelWithin(tx, behind, error, now);
    const isLast = behind.length < limit;
    const purged = isLast ? await purgeEnded(tx, [taskId], kept, now) : 0;
    if (isLast) await releaseHeads(tx, [workflowId], now);
    await countCancelled(tx, cancelled);
    return { purged, cancelled, why };
  };
  return withPartitions(db, { now }, () => db.transaction(giveUp));
}

async function isStillOver(
  tx: Queryable,
  id: TaskId,
  kept: KeptDays,
  now: Instant,
): Promise<boolean> {
  const rows = await tx.query(
    `select from sluice.tasks where id = $4::uuid and ${isOver} for update`,
    [now, kept.failed, kept.deadLetter, id],
  );
  return rows.length > 0;
}

/** Index: tasks_workflow_line. */
async function findBehind(
  tx: Queryable,
  workflowId: string,
  seq: number,
  limit: number,
): Promise<TaskId[]> {
  await tx.run(inOrderOfIndex);
  const rows = await tx.query<{ id: TaskId }>(
    `select id from sluice.tasks
     where workflow_id = $1 and (status not in ('dead_letter', 'failed') or halts_workflow)
       and seq > $2::bigint and waits_for = 'workflow'
     order by seq limit $3`,
    [workflowId, seq, limit],
  );
  return rows.map((row) => row.id);
}

function reasonOf({ taskId, status }: HaltingRow, kept: KeptDays): AttemptError {
  const days = status === 'failed' ? kept.failed : kept.deadLetter;
  const ended = status === 'failed' ? 'failed' : 'became a dead letter';
  return {
    code: attemptErrorCodes.workflowGivenUp,
    message:
      `Its workflow was halted by task ${taskId}, which ${ended} and was neither replayed nor ` +
      `cancelled in ${days} days.`,
    retriable: true,
  };
}
