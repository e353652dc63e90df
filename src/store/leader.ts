import type { Queryable } from './database.js';
import type { ReadyQueueMode } from './serving.js';

/** Who holds the lease on serving. */
export interface Leader {
  readonly holder: string;
  readonly mode: ReadyQueueMode;
  readonly since: Date;
  readonly renewedAt: Date;
}

/** For a process that does not want the lease itself. Null: nobody holds it. */
export async function findLeader(db: Queryable): Promise<Leader | null> {
  const [row] = await db.query<{
    holder: string;
    ready_queue: ReadyQueueMode;
    since: Date;
    renewed_at: Date;
  }>('select holder::text as holder, ready_queue, since, renewed_at from sluice.serving');
  if (row === undefined) return null;
  const { holder, ready_queue: mode, since, renewed_at: renewedAt } = row;
  return { holder, mode, since, renewedAt };
}
