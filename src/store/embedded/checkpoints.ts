import type { PGlite } from '@electric-sql/pglite';

/** As with a server's default of `max_wal_size` for segments of 1 MB. */
export const defaultWalBytes = 64 * 1024 * 1024;

/** A statement writes about 1 MB at most: a batch of 500 tasks. */
const statementsBetweenLooks = 64;

const isDueSql = `
select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn) > $1 as is_due
from pg_control_checkpoint()`;

/**
 * Call the answer after every statement. A Postgres server has a process that writes checkpoints, PGlite has
 * none: its WAL would grow until the database is closed, and the start after a kill would replay all of it.
 */
export function checkpointsOf(lite: PGlite, walBytes: number): () => void {
  let statements = 0;
  let isLooking = false;
  const look = async (): Promise<void> => {
    const { rows } = await lite.query<{ is_due: boolean }>(isDueSql, [walBytes]);
    if (rows[0]?.is_due === true) await lite.exec('checkpoint');
  };
  return () => {
    statements += 1;
    if (statements < statementsBetweenLooks || isLooking) return;
    statements = 0;
    isLooking = true;
    // Nothing is lost when one fails, as on a full disk or while closing: the WAL is kept, and the next look tries again.
    look()
      .catch(() => undefined)
      .finally(() => {
        isLooking = false;
      });
  };
}
