import { laneKey } from '../domain/lane.js';
import { rankOf } from '../domain/priority.js';
import { column } from './columns.js';
import type { Database } from './database.js';
import type { LineWindow } from './task-row.js';

/** Few enough that however many servers feed, their locks fit into Postgres's table of locks. */
const turns = 64;

/** Locks of the transaction, as PgBouncer needs it; a server that hangs loses them after 5 s. */
const takeTurnsSql = `
select pg_try_advisory_xact_lock(hashtext('sluice.feed'), hashtext(wanted.key) & ${turns - 1}) as is_ours,
  set_config('idle_in_transaction_session_timeout', '5s', true)
from unnest($1::text[]) with ordinality as wanted (key, place)
order by wanted.place`;

/**
 * One server at a time feeds a window: from the look at its room until what was fed is offered.
 * `work` is told which of the windows are ours for that long.
 */
export async function withFeedTurns<T>(
  db: Database,
  windows: readonly LineWindow[],
  work: (areOurs: readonly boolean[]) => Promise<T>,
): Promise<T> {
  return db.transaction(async (turn) => {
    const rows = await turn.query<{ is_ours: boolean }>(takeTurnsSql, [
      column(windows, ({ lane, priority }) => `${String(rankOf(priority))}\n${laneKey(lane)}`),
    ]);
    return work(rows.map((row) => row.is_ours));
  });
}
