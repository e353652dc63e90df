import type { Actor, AuditAction, AuditChanges } from '../domain/audit.js';
import type { JsonObject } from '../domain/json.js';
import type { AuditEntry, AuditFilter } from '../protocol/audit-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type { Instant, Queryable } from './database.js';
import { maxScannedRows } from './task-walk.js';
import { badCursor, decodeCursor, defaultPageLimit, encodeCursor } from './paging.js';

export interface NewAuditEntry {
  readonly actor: Actor;
  readonly action: AuditAction;
  readonly subject: string | null;
  readonly changes: AuditChanges;
  readonly details: JsonObject;
}

export async function insertAuditEntry(
  db: Queryable,
  { actor, action, subject, changes, details }: NewAuditEntry,
  now: Instant,
): Promise<void> {
  await db.query(
    `insert into sluice.audit
       (at, actor, key_id, key_name, session_id, address, action, subject, changes, details)
     values (date_trunc('milliseconds', coalesce($10::timestamptz, now())), $1, $2, $3, $4, $5, $6, $7,
       $8::json, $9::json)`,
    [
      ...[actor.kind, actor.keyId, actor.keyName, actor.sessionId, actor.address, action, subject],
      ...[JSON.stringify(changes), JSON.stringify(details), now],
    ],
  );
}

interface AuditRow {
  readonly id: number;
  readonly at: Date;
  readonly actor: Actor['kind'];
  readonly key_id: string | null;
  readonly key_name: string | null;
  readonly session_id: string | null;
  readonly address: string | null;
  readonly action: AuditAction;
  readonly subject: string | null;
  readonly changes: AuditChanges;
  readonly details: JsonObject;
}

/** Newest first. Reads a bounded part of the index audit_at; of that the filter chooses. */
export async function listAudit(
  db: Queryable,
  { actor, action, subject, from, to }: AuditFilter,
  page: PageRequest,
): Promise<Page<AuditEntry>> {
  const limit = page.limit ?? defaultPageLimit;
  const before = page.cursor === undefined ? null : decodePlace(page.cursor);
  const rows = await db.query<AuditRow & { last_id: number | null; last_at: Date | null }>(
    `with walk as materialized (
       select * from sluice.audit
       where at >= coalesce($4::timestamptz, '-infinity') and at < coalesce($5::timestamptz, 'infinity')
         and (at, id) < (coalesce($6::timestamptz, 'infinity'), coalesce($7::bigint, 0))
       order by at desc, id desc limit ${maxScannedRows}
     ), found as (
       select * from walk
       where ($1::text is null or $1 in (actor, key_id, session_id) or strpos(details::text, $9) > 0)
         and ($2::text is null or action = $2) and ($3::text is null or subject = $3)
       order by at desc, id desc limit $8::integer
     )
     select found.*, last.id as last_id, last.at as last_at
     from (select) as one
     left join lateral (
       select id, at from walk order by at desc, id desc offset ${maxScannedRows - 1}
     ) last on true
     left join found on true
     order by found.at desc, found.id desc`,
    [
      ...[actor ?? null, action ?? null, subject ?? null, from ?? null, to ?? null],
      ...[before?.at ?? null, before?.id ?? null, limit, onBehalfOf(actor)],
    ],
  );
  const items = rows.flatMap((row) => (isEntry(row) ? [toEntry(row)] : []));
  const [first] = rows;
  const last = items.length === limit ? items.at(-1) : placeOf(first);
  return { items, nextCursor: last === undefined ? null : encodePlace(last) };
}

/** As `details` has it. As text: `->>` fails on every row whose details have a NUL character anywhere. */
function onBehalfOf(name: string | undefined): string {
  return JSON.stringify({ on_behalf_of: name ?? '' }).slice(1, -1);
}

function isEntry(row: { readonly id: number | null }): boolean {
  return row.id !== null;
}

interface Place {
  readonly at: Date;
  readonly id: number;
}

/** Where the walk ended early; undefined: it came to the end. */
function placeOf(
  row: { readonly last_id: number | null; readonly last_at: Date | null } | undefined,
): Place | undefined {
  if (row === undefined || row.last_id === null || row.last_at === null) return undefined;
  return { at: row.last_at, id: row.last_id };
}

function encodePlace({ at, id }: Place): string {
  return encodeCursor(`${at.getTime()} ${id}`);
}

function decodePlace(cursor: string): Place {
  const [, at, id] = /^(\d{1,13}) (\d{1,15})$/.exec(decodeCursor(cursor)) ?? [];
  if (at === undefined || id === undefined) throw badCursor();
  return { at: new Date(Number(at)), id: Number(id) };
}

function toEntry(row: AuditRow): AuditEntry {
  return {
    id: row.id,
    at: row.at,
    actor: {
      kind: row.actor,
      keyId: row.key_id,
      keyName: row.key_name,
      sessionId: row.session_id,
      address: row.address,
    },
    action: row.action,
    subject: row.subject,
    changes: row.changes,
    details: row.details,
  };
}

/** How many went. Index: audit_at. */
export async function purgeAudit(
  db: Queryable,
  keptDays: number,
  limit: number,
  now: Instant,
): Promise<number> {
  const gone = await db.query(
    `delete from sluice.audit where id = any(array(
       select id from sluice.audit
       where at < coalesce($2::timestamptz, now()) - $1::float8 * interval '1 day'
       order by at, id limit $3
     )) returning id`,
    [keptDays, now, limit],
  );
  return gone.length;
}
