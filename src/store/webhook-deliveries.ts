import type { Instant, Queryable } from './database.js';

/** A message to a webhook, for one try. */
export interface ClaimedMessage {
  readonly id: number;
  readonly messageId: string;
  readonly eventType: string;
  readonly event: Readonly<Record<string, unknown>>;
  readonly createdAt: Date;
  /** This one included. */
  readonly tries: number;
  readonly failingSince: Date | null;
  /** Since the message was made. */
  readonly ageMs: number;
}

interface ClaimedRow {
  id: number;
  message_id: string;
  event_type: string;
  event: Readonly<Record<string, unknown>>;
  created_at: Date;
  tries: number;
  failing_since: Date | null;
  age_ms: number;
}

export interface Claimer {
  readonly target: string;
  readonly sender: string;
  /** Longer than one try takes: then another server may try. */
  readonly leaseMs: number;
}

/**
 * The first message of a target that waits, if it is due and nobody tries it now. Later ones wait for it, so that they
 * arrive in order. Of two servers at once the second finds the row claimed. Index: webhook_deliveries_waiting.
 */
export async function claimMessage(
  db: Queryable,
  { target, sender, leaseMs }: Claimer,
  now: Instant,
): Promise<ClaimedMessage | null> {
  const [row] = await db.query<ClaimedRow>(
    `update sluice.webhook_deliveries d set
       tries = d.tries + 1, claimed_by = $2::uuid,
       claimed_until = instant + $3::float8 * interval '1 ms'
     from coalesce($4::timestamptz, now()) as instant
     where d.id = (
         select id from sluice.webhook_deliveries
         where target = $1 and given_up_at is null order by id limit 1
       )
       and d.due_at <= instant and (d.claimed_until is null or d.claimed_until <= instant)
     returning d.id, d.message_id, d.event_type, d.event, d.created_at, d.tries, d.failing_since,
       extract(epoch from instant - d.created_at)::float8 * 1000 as age_ms`,
    [target, sender, leaseMs, now],
  );
  if (row === undefined) return null;
  return {
    id: row.id,
    messageId: row.message_id,
    eventType: row.event_type,
    event: row.event,
    createdAt: row.created_at,
    tries: row.tries,
    failingSince: row.failing_since,
    ageMs: row.age_ms,
  };
}

export async function deleteMessage(db: Queryable, id: number): Promise<void> {
  await db.query('delete from sluice.webhook_deliveries where id = $1::bigint', [id]);
}

export interface FailedTry {
  readonly id: number;
  readonly sender: string;
  readonly error: string;
  /** Null: it is not tried again. */
  readonly retryInMs: number | null;
}

/** Only while the claim holds: another server may try it by now. */
export async function noteFailedTry(
  db: Queryable,
  { id, sender, error, retryInMs }: FailedTry,
  now: Instant,
): Promise<void> {
  await db.query(
    `update sluice.webhook_deliveries set
       error = $3, failing_since = coalesce(failing_since, instant),
       due_at = instant + coalesce($4::float8, 0) * interval '1 ms',
       claimed_by = null, claimed_until = null,
       given_up_at = case when $4::float8 is null then instant end
     from coalesce($5::timestamptz, now()) as instant
     where id = $1::bigint and claimed_by = $2::uuid`,
    [id, sender, error, retryInMs, now],
  );
}

/** A message that is due for so long is tried by no server any more: its webhook was taken away. */
const triedWithin = `interval '1 hour'`;

/** For how long the message has failed that waits longest, of all targets that are tried; 0: none fails. */
export async function readWebhookFailing(db: Queryable, now: Instant): Promise<number> {
  const [row] = await db.query<{ seconds: number | null }>(
    `select extract(epoch from coalesce($1::timestamptz, now()) - min(failing_since))::float8 as seconds
     from sluice.webhook_deliveries
     where given_up_at is null and due_at > coalesce($1::timestamptz, now()) - ${triedWithin}`,
    [now],
  );
  return Math.max(0, row?.seconds ?? 0);
}

const maxWaiting = 1_000;
const givenUpKeptDays = 30;

/** Keeps the newest messages of a target, and deletes what was given up long ago. How many waiting ones went. */
export async function trimMessages(db: Queryable, target: string, now: Instant): Promise<number> {
  const [row] = await db.query<{ dropped: number }>(
    `with dropped as (
       delete from sluice.webhook_deliveries where id in (
         select id from sluice.webhook_deliveries
         where target = $1 and given_up_at is null order by id desc offset ${maxWaiting}
       ) returning id
     ), purged as (
       delete from sluice.webhook_deliveries
       where given_up_at < coalesce($2::timestamptz, now()) - ${givenUpKeptDays} * interval '1 day'
     )
     select count(*) as dropped from dropped`,
    [target, now],
  );
  return row?.dropped ?? 0;
}
