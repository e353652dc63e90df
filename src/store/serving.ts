import type { Instant, Queryable } from './database.js';
import { findLeader } from './leader.js';

export type ReadyQueueMode = 'memory' | 'redis';

export type ServingAnswer =
  | { readonly kind: 'serving' }
  | {
      readonly kind: 'standby';
      readonly holder: string;
      readonly mode: ReadyQueueMode;
      readonly renewedAt: Date;
      /** When the holder took it. */
      readonly since: Date;
    };

export interface SharedPlace {
  /** Which Redis; null: it does not answer, or nobody asks. */
  readonly place: string | null;
  /** It serves already, and keeps its turn when its Redis got another name by a flush. */
  readonly isServing: boolean;
}

/**
 * What a standby knows of the row by its own clock, which never steps: the clock of Postgres may be set.
 * `alive`: it was renewed a moment ago. `gone`: it says the same for a whole lease.
 */
export interface SeenTurn {
  readonly state: 'alive' | 'gone';
  readonly renewedAt: Date;
}

const noPlace: SharedPlace = { place: null, isServing: false };

/**
 * With the ready queue in memory one process serves at a time; with Redis all do, and the row only
 * says that Redis is in use. Also renews: in memory whoever holds it, with Redis any of them for all.
 * The two never serve at once: each waits until the turn of the other has lapsed. So does one that
 * comes with another Redis than those who serve. It lapses by the clock of Postgres, unless `seen` knows
 * better.
 */
export async function takeServing(
  db: Queryable,
  holder: string,
  mode: ReadyQueueMode,
  leaseMs: number,
  now: Instant,
  shared: SharedPlace = noPlace,
  seen: SeenTurn | null = null,
): Promise<ServingAnswer> {
  const taken = await db.query(
    `insert into sluice.serving as s (holder, ready_queue, place, renewed_at, since)
     values (
       $1::uuid, $2, $5, coalesce($4::timestamptz, now()), coalesce($4::timestamptz, now())
     )
     on conflict (only_row) do update set
       holder = excluded.holder, ready_queue = excluded.ready_queue,
       place = coalesce(excluded.place, s.place), renewed_at = excluded.renewed_at,
       since = case when s.holder = excluded.holder then s.since else excluded.renewed_at end
     where s.holder = excluded.holder
       or (s.ready_queue = 'redis' and excluded.ready_queue = 'redis'
         and ($6 or coalesce(s.place = excluded.place, true)))
       or (not $7::boolean and s.renewed_at < excluded.renewed_at - $3::float8 * interval '1 ms')
       -- A date here has milliseconds.
       or s.renewed_at between $8::timestamptz - interval '1 ms' and $8::timestamptz + interval '1 ms'
     returning s.holder`,
    [
      holder,
      mode,
      leaseMs,
      now,
      shared.place,
      shared.isServing,
      seen?.state === 'alive',
      seen?.state === 'gone' ? seen.renewedAt : null,
    ],
  );
  if (taken.length > 0) return { kind: 'serving' };
  const row = await findLeader(db);
  // It left in between the two statements.
  if (row === null) return takeServing(db, holder, mode, leaseMs, now, shared, seen);
  return { kind: 'standby', ...row };
}

/**
 * In memory only: with Redis the row names whoever renewed it last, and `takeServing` renews.
 * False: another process took over. A lapsed lease that nobody took is still the holder's.
 */
export async function renewServing(db: Queryable, holder: string, now: Instant): Promise<boolean> {
  const renewed = await db.query(
    `update sluice.serving set renewed_at = coalesce($2::timestamptz, now())
     where holder = $1::uuid returning holder`,
    [holder, now],
  );
  return renewed.length > 0;
}

/** For a database that no other process can use: the holder in the row has ended without giving its turn back. */
export async function clearServing(db: Queryable): Promise<void> {
  await db.query('delete from sluice.serving');
}

/**
 * The next one need not wait for the lease to lapse. With Redis others may still serve, so the row
 * and its place stay until none of them renews it.
 */
export async function leaveServing(db: Queryable, holder: string): Promise<void> {
  await db.query(`delete from sluice.serving where holder = $1::uuid and ready_queue = 'memory'`, [
    holder,
  ]);
}
