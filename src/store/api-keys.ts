import type { Scope } from '../domain/scopes.js';
import type { KeyView, SessionView } from '../protocol/keys-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import { column } from './columns.js';
import type { Database, Instant, Queryable } from './database.js';
import { decodeCursor, defaultPageLimit, encodeCursor } from './paging.js';

export interface NewKey {
  readonly id: string;
  readonly name: string;
  /** SHA-256, in hex. */
  readonly hash: string;
  readonly scopes: readonly Scope[];
  readonly passesCeilings: boolean;
  /** Null: every queue. */
  readonly queues: readonly string[] | null;
  readonly ownTasks: boolean;
  /** Null: until it is revoked. */
  readonly expiresInSeconds: number | null;
}

/** What a server needs to know of a key to judge a call. */
export interface StoredKey extends KeyView {
  readonly hash: string;
  /** The key that a person signed in with; null: it is a key itself. */
  readonly sessionOf: string | null;
  /** The address that a person signed in from; null: it is a key, or the address was not kept. */
  readonly signedInFrom: string | null;
}

interface KeyRow {
  id: string;
  name: string;
  hash: string;
  scopes: Scope[];
  passes_ceilings: boolean;
  queues: string[] | null;
  own_tasks: boolean;
  session_of: string | null;
  signed_in_from: string | null;
  changed_at: Date;
  created_at: Date;
  expires_at: Date | null;
  revoked_at: Date | null;
  last_used_at: Date | null;
}

const columns =
  'id, name, hash, scopes, passes_ceilings, queues, own_tasks, session_of, signed_in_from, changed_at, created_at, ' +
  'expires_at, revoked_at, last_used_at';

export async function insertKey(
  db: Queryable,
  key: NewKey,
  now: Instant,
): Promise<StoredKey & { readonly isFirst: boolean }> {
  const [row] = await db.query<KeyRow & { is_first: boolean }>(
    `insert into sluice.api_keys
       (id, name, hash, scopes, passes_ceilings, queues, own_tasks, created_at, expires_at,
        changed_at)
     select $1, $2, $3, $4::text[], $5::boolean, $8::text[], $9::boolean, instant,
       instant + make_interval(secs => $6::float8), instant
     from (select coalesce($7::timestamptz, now()) as instant) as clock
     returning ${columns}, not exists (select from sluice.api_keys) as is_first`,
    [
      ...[key.id, key.name, key.hash, key.scopes, key.passesCeilings, key.expiresInSeconds, now],
      ...[key.queues, key.ownTasks],
    ],
  );
  if (row === undefined) throw new Error('the key was not inserted');
  return { ...toKey(row), isFirst: row.is_first };
}

/** A key has at most this many sessions at a time; the next sign-in ends the oldest. */
const maxSessions = 20;

export interface NewSession {
  readonly id: string;
  readonly hash: string;
  readonly of: string;
  readonly lifeSeconds: number;
  readonly signedInFrom: string | null;
}

/**
 * Null: the key ended. The lock of the key's row comes first and in a statement of its own: sign-ins of
 * one key and its revocation run one after the other, and each sees what the one before committed.
 * Sessions that expired a day ago are deleted: every server has forgotten them. Index: api_keys_sessions.
 */
export function insertSession(
  db: Database,
  session: NewSession,
  now: Instant,
  also: Also = async () => undefined,
): Promise<StoredKey | null> {
  return db.transaction(async (tx) => {
    const locked = await tx.query(
      `select from sluice.api_keys
       where id = $1 and session_of is null and revoked_at is null
         and (expires_at is null or expires_at > coalesce($2::timestamptz, now()))
       for no key update`,
      [session.of, now],
    );
    if (locked.length === 0) return null;
    const [row] = await tx.query<KeyRow>(insertSessionSql, [
      session.id,
      session.hash,
      session.of,
      session.lifeSeconds,
      now,
      maxSessions,
      session.signedInFrom,
    ]);
    if (row === undefined) return null;
    await also(tx);
    return toKey(row);
  });
}

/** Is done in the same transaction. */
type Also = (tx: Queryable) => Promise<void>;

const insertSessionSql = `
  with clock as (select coalesce($5::timestamptz, now()) as instant),
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
    (id, name, hash, scopes, passes_ceilings, queues, own_tasks, session_of, signed_in_from,
     created_at, expires_at, changed_at)
  select $1, name, $2, scopes, passes_ceilings, queues, own_tasks, id, $7, instant,
    least(expires_at, instant + make_interval(secs => $4::float8)), instant
  from sluice.api_keys, clock
  where id = $3
  returning ${columns}`;

export interface KeysRead {
  readonly keys: readonly StoredKey[];
  /** By the clock that writes `changed_at`: an estimate of it is wrong for minutes after a step. */
  readonly readAt: Date;
}

/** Those that are good, or all that changed since. Index: api_keys_changed. */
export async function findKeysChanged(
  db: Queryable,
  since: Date | null,
  now: Instant,
): Promise<KeysRead> {
  const rows = await db.query<(KeyRow | { id: null }) & { read_at: Date }>(
    `select read_at, key.*
     from coalesce($2::timestamptz, now()) as read_at left join lateral (
       select ${columns} from sluice.api_keys
       where changed_at >= coalesce($1::timestamptz, '-infinity')
         and ($1::timestamptz is not null or revoked_at is null)
     ) key on true`,
    [since, now],
  );
  const [first] = rows;
  if (first === undefined) throw new Error('a left join answered no row');
  const keys = rows.flatMap((row) => (row.id === null ? [] : [toKey(row)]));
  return { keys, readAt: first.read_at };
}

export async function wasAnyKeyMade(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ made: boolean }>(
    'select exists (select from sluice.api_keys) as made',
  );
  return row?.made === true;
}

/** Null: there is no such key. */
export async function findKey(db: Queryable, id: string): Promise<StoredKey | null> {
  const [row] = await db.query<KeyRow>(
    `select ${columns} from sluice.api_keys where id = $1 and session_of is null`,
    [id],
  );
  return row === undefined ? null : toKey(row);
}

/** Without sessions: see `listSessions`. */
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

/** The sessions of a key that are good, the newest first. Null: there is no such key. */
export async function listSessions(
  db: Queryable,
  keyId: string,
  now: Instant,
): Promise<SessionView[] | null> {
  const rows = await db.query<(KeyRow & { id: string }) | { id: null }>(
    `select session.*
     from sluice.api_keys key left join lateral (
       select ${columns} from sluice.api_keys
       where session_of = key.id and revoked_at is null and key.revoked_at is null
         and expires_at > coalesce($2::timestamptz, now())
     ) session on true
     where key.id = $1 and key.session_of is null
     order by session.created_at desc, session.id`,
    [keyId, now],
  );
  if (rows.length === 0) return null;
  return rows.flatMap((row) => (row.id === null ? [] : [toSession(toKey(row))]));
}

/** Null: this key has no such session. Again changes nothing. */
export async function endSession(
  db: Queryable,
  { keyId, sessionId }: { readonly keyId: string; readonly sessionId: string },
  now: Instant,
): Promise<SessionView | null> {
  const [row] = await db.query<KeyRow>(
    `update sluice.api_keys
     set revoked_at = coalesce(revoked_at, $3::timestamptz, now()),
       changed_at = coalesce($3::timestamptz, now())
     where id = $2 and session_of = $1
     returning ${columns}`,
    [keyId, sessionId, now],
  );
  return row === undefined ? null : toSession(toKey(row));
}

/**
 * Null: there is no such key. Again changes nothing. The key's row decides: its sessions are good only
 * while it is. Their rows are marked as well, for servers of the version before and for the list; the
 * key's row is locked first, as by a sign-in.
 */
export function revokeKey(
  db: Database,
  id: string,
  now: Instant,
  also: Also = async () => undefined,
): Promise<StoredKey | null> {
  return db.transaction(async (tx) => {
    const [row] = await tx.query<KeyRow>(
      `update sluice.api_keys
       set revoked_at = coalesce(revoked_at, $2::timestamptz, now()),
         changed_at = coalesce($2::timestamptz, now())
       where id = $1 and session_of is null
       returning ${columns}`,
      [id, now],
    );
    if (row === undefined) return null;
    await tx.query(
      `update sluice.api_keys set revoked_at = $2::timestamptz, changed_at = $3::timestamptz
       where session_of = $1 and revoked_at is null`,
      [id, row.revoked_at, row.changed_at],
    );
    await also(tx);
    return toKey(row);
  });
}

/**
 * Changes no column that an index reads. A row that is locked is left out, so that this waits for
 * nobody; the caller notes it again later. Answers with those that were written.
 */
export async function noteKeysUsed(
  db: Queryable,
  used: readonly { readonly id: string; readonly at: Date }[],
): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ id: string }>(
    `with free as (
       select id from sluice.api_keys where id = any($1::text[])
       order by id for no key update skip locked
     )
     update sluice.api_keys key set last_used_at = greatest(key.last_used_at, used.at)
     from unnest($1::text[], $2::timestamptz[]) as used (id, at), free
     where key.id = used.id and key.id = free.id
     returning key.id`,
    [column(used, ({ id }) => id), column(used, ({ at }) => at)],
  );
  return new Set(rows.map(({ id }) => id));
}

export function toView(key: StoredKey): KeyView {
  const { hash: _hash, sessionOf: _sessionOf, signedInFrom: _signedInFrom, ...view } = key;
  return view;
}

function toSession({
  id,
  createdAt,
  expiresAt,
  lastUsedAt,
  revokedAt,
  ...key
}: StoredKey): SessionView {
  if (key.sessionOf === null || expiresAt === null) throw new Error(`${id} is not a session`);
  const { sessionOf: keyId, signedInFrom } = key;
  return { id, keyId, signedInFrom, createdAt, expiresAt, lastUsedAt, endedAt: revokedAt };
}

function toKey(row: KeyRow): StoredKey {
  return {
    id: row.id,
    name: row.name,
    hash: row.hash,
    scopes: row.scopes,
    passesCeilings: row.passes_ceilings,
    queues: row.queues,
    ownTasks: row.own_tasks,
    sessionOf: row.session_of,
    signedInFrom: row.signed_in_from,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
  };
}
