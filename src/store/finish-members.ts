import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Held } from '../protocol/workers-api.js';
import { countEnded } from './admission.js';
import type { Database, Instant, Queryable } from './database.js';
import { withPartitions } from './partitions.js';
import { lockWorkflows, releaseHeads, type ReleasedHead } from './release-heads.js';
import { writeFenced } from './write-fenced.js';

export interface FinishedRow {
  readonly taskId: TaskId;
  readonly lease: Lease;
  readonly queue: string;
  readonly taskType: string;
  readonly priority: Priority;
  readonly cost: Cost;
  readonly workerId: WorkerId;
  readonly workflowId: string | null;
  readonly attempt: number;
  readonly trace: string | null;
  readonly from: 'assigned' | 'executing';
  readonly runMs: number;
  /** The next member of its workflow is due. */
  readonly released: boolean;
}

/**
 * Most tasks are in no workflow and end by `finish` alone. Members are left over by it: they end in
 * a transaction that holds their workflow, and then lets the next one go. Each step is a statement
 * of its own, so that it sees what was committed before the lock was granted.
 */
export function finishFenced<Item extends Held, Finished extends FinishedRow>(
  db: Database,
  items: readonly Item[],
  now: Instant,
  finish: (
    connection: Queryable,
    items: readonly Item[],
    now: Instant,
    withMembers: boolean,
  ) => Promise<Finished[]>,
  hasEnded: (row: Finished) => boolean,
): Promise<Finished[]> {
  return writeFenced(
    db,
    items,
    (all) => withPartitions(db, { now }, () => finish(db, all, now, false)),
    (rest, workflowIds) =>
      withPartitions(db, { now }, () =>
        db.transaction(async (tx) => {
          await lockWorkflows(tx, workflowIds);
          const finished = await finish(tx, rest, now, true);
          const heads = await releaseHeads(tx, workflowIds, now);
          await countEnded(
            tx,
            finished.filter(hasEnded).map(({ queue }) => queue),
          );
          return noteReleased(finished, heads);
        }),
      ),
  );
}

function noteReleased<Finished extends FinishedRow>(
  finished: readonly Finished[],
  heads: readonly ReleasedHead[],
): Finished[] {
  const headOf = new Map(heads.map((head) => [head.workflowId, head]));
  return finished.map((row) => {
    const head = row.workflowId === null ? undefined : headOf.get(row.workflowId);
    return head?.isDue === true ? { ...row, released: true } : row;
  });
}
