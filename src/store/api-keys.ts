import type { Scope } from '../domain/scopes.js';
import type { KeyView } from '../protocol/keys-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import { column } from './columns.js';
import type { Instant, Queryable } from './database.js';
import { decodeCursor, defaultPageLimit, encodeCursor } from './paging.js';

export interface NewKey {
  readonly id: string;
  readonly name: string;
  /** SHA-256, in hex. */
  readonly hash: string;
  readonly scopes: readonly Scope[];
  readonly passesCeilings: boolean;
  /** Null: until it is revoked. */
  readonly expiresInSeconds: number | null;
}

/** What a server needs to know of a key to judge a call. */
export interface StoredKey extends KeyView {
  readonly hash: string;
  /** The key that a person signed in with; null: it is a key itself. */
  readonly sessionOf: string | null;
}

interface KeyRow {
  id: string;
  name: string;
  hash: string;
  scopes: Scope[];
  passes_ceilings: boolean;
  session_of: string | null;
  created_at: Date;
  expires_at: Date | null;
  revoked_at: Date | null;
  last_used_at: Date | null;
}

const columns =
  'id, name, hash, scopes, passes_ceilings, session_of, created_at, expires_at, revoked_at, ' +
  'last_used_at';

export async function insertKey(
  db: Queryable,
  key: NewKey,
  now: Instant,
): Promise<StoredKey & { readonly isFirst: boolean }> {
  const [row] = await db.query<KeyRow & { is_first: boolean }>(
    `insert into sluice.api_keys
       (id, name, hash, scopes, passes_ceilings, created_at, expires_at, changed_at)
     select $1, $2, $3, $4::text[], $5::boolean, instant,
       instant + make_interval(secs => $6::float8), instant
     from (select coalesce($7::timestamptz, now()) as instant) as clock
     returning ${columns}, not exists (select from sluice.api_keys) as is_first`,
    [key.id, key.name, key.hash, key.scopes, key.passesCeilings, key.expiresInSeconds, now],
  );
  if (row === undefined) throw new Error('the key was not inserted');
  return { ...toKey(row), isFirst: row.is_first };
}

/** So many of one key live at a time; beyond them the oldest ends. */
const maxSessions = 20;

/**
 * With what its key may do, no longer than its key lives. Null: the key ended. Those that ended long
 * ago go on the way: every server has forgotten them. Index: api_keys_sessions.
 */
export async function insertSession(
  db: Queryable,
  session: Pick<NewKey, 'id' | 'hash'> & { readonly of: string; readonly lifeSeconds: number },
  now: Instant,
): Promise<StoredKey | null> {
  const [row] = await db.query<KeyRow>(
    `with clock as (select coalesce($5::timestamptz, now()) as instant),
     gone as (
       delete from sluice.api_keys using clock
       where session_of = $3 and expires_at < instant - interval '1 day'
     ),
     ended as (
       update sluice.api_keys key set revoked_at = instant, changed_at = instant
       from clock, (
         select id from sluice.api_keys, clock
         where session_of = $3 and revoked_at is null and expires_at > instant
         order by created_at desc offset $6::int - 1
       ) as surplus
       where key.id = surplus.id
     )
     insert into sluice.api_keys
       (id, name, hash, scopes, passes_ceilings, session_of, created_at, expires_at, changed_at)
     select $1, name, $2, scopes, passes_ceilings, id, instant,
       least(expires_at, instant + make_interval(secs => $4::float8)), instant
     from sluice.api_keys, clock
     where id = $3 and revoked_at is null and (expires_at is null or expires_at > instant)
     returning ${columns}`,
    [session.id, session.hash, session.of, session.lifeSeconds, now, maxSessions],
  );
  return row === undefined ? null : toKey(row);
}

/** Those that are good, or all that changed since. Index: api_keys_changed. */
export async function findKeysChanged(db: Queryable, since: Date | null): Promise<StoredKey[]> {
  const rows = await db.query<KeyRow>(
    `select ${columns} from sluice.api_keys
     where changed_at >= coalesce($1::timestamptz, '-infinity')
       and ($1::timestamptz is not null or revoked_at is null)`,
    [since],
  );
  return rows.map(toKey);
}

export async function wasAnyKeyMade(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ made: boolean }>(
    'select exists (select from sluice.api_keys) as made',
  );
  return row?.made === true;
}

/** Sessions are not listed: they come and go. */
export async function listKeys(
  db: Queryable,
  { limit = defaultPageLimit, cursor }: PageRequest,
): Promise<Page<KeyView>> {
  const after = cursor === undefined ? '' : decodeCursor(cursor);
  const rows = await db.query<KeyRow>(
    `select ${columns} from sluice.api_keys
     where id > $1 and session_of is null
     order by id limit $2`,
    [after, limit + 1],
  );
  const items = rows.slice(0, limit).map((row) => toView(toKey(row)));
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, nextCursor: last === undefined ? null : encodeCursor(last.id) };
}

/** Ends it, and whoever signed in with it. Null: there is none. Again changes nothing. */
export async function revokeKey(
  db: Queryable,
  id: string,
  now: Instant,
): Promise<StoredKey | null> {
  const rows = await db.query<KeyRow>(
    `update sluice.api_keys
     set revoked_at = coalesce(revoked_at, $2::timestamptz, now()),
       changed_at = coalesce($2::timestamptz, now())
     where id = $1 or session_of = $1
     returning ${columns}`,
    [id, now],
  );
  const row = rows.find((one) => one.id === id);
  return row === undefined ? null : toKey(row);
}

/** Changes no column that an index reads. */
export async function noteKeysUsed(
  db: Queryable,
  used: readonly { readonly id: string; readonly at: Date }[],
): Promise<void> {
  await db.query(
    `update sluice.api_keys key set last_used_at = greatest(key.last_used_at, used.at)
     from unnest($1::text[], $2::timestamptz[]) as used (id, at)
     where key.id = used.id`,
    [column(used, ({ id }) => id), column(used, ({ at }) => at)],
  );
}

export function toView({ hash: _hash, sessionOf: _sessionOf, ...view }: StoredKey): KeyView {
  return view;
}

function toKey(row: KeyRow): StoredKey {
  return {
    id: row.id,
    name: row.name,
    hash: row.hash,
    scopes: row.scopes,
    passesCeilings: row.passes_ceilings,
    sessionOf: row.session_of,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
  };
}
