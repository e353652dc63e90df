import type { ActiveAlert, AlertSettings } from '../domain/alerts/state.js';
import { emptySnapshot, type AlertSnapshot } from '../domain/alerts/snapshot.js';
import { column } from './columns.js';
import type { Instant, Queryable } from './database.js';

export interface EvaluatingTurn {
  readonly evaluator: string;
  readonly leaseMs: number;
  /** No other server serves: there is none to wait for. */
  readonly isAlone: boolean;
}

/** Takes the turn to evaluate, or renews it. Answers with its number; null: another server evaluates. */
export async function takeEvaluatingTurn(
  db: Queryable,
  { evaluator, leaseMs, isAlone }: EvaluatingTurn,
  now: Instant,
): Promise<number | null> {
  const [row] = await db.query<{ turn: number }>(
    `insert into sluice.alert_evaluation as e (evaluator, renewed_at)
     values ($1::uuid, coalesce($4::timestamptz, now()))
     on conflict (only_row) do update set
       evaluator = excluded.evaluator, renewed_at = excluded.renewed_at, turn = e.turn + 1
     where e.evaluator = excluded.evaluator or $3
       or e.renewed_at < excluded.renewed_at - $2::float8 * interval '1 ms'
     returning e.turn`,
    [evaluator, leaseMs, isAlone, now],
  );
  return row?.turn ?? null;
}

/** The next evaluator need not wait for the lease to lapse. What was measured last stays. */
export async function leaveEvaluating(db: Queryable, evaluator: string): Promise<void> {
  await db.query(
    `update sluice.alert_evaluation set renewed_at = '-infinity' where evaluator = $1::uuid`,
    [evaluator],
  );
}

export interface StoredSettings extends AlertSettings {
  readonly silenceNote: string | null;
}

export interface AlertBook {
  readonly evaluatedAt: Date | null;
  readonly snapshot: AlertSnapshot;
  /** By rule; those of which anything was changed. */
  readonly settings: ReadonlyMap<string, StoredSettings>;
  /** By rule. */
  readonly active: ReadonlyMap<string, readonly ActiveAlert[]>;
  /** Of the database, or of the test's clock. */
  readonly nowMs: number;
}

interface BookRow {
  now_ms: number;
  evaluated_at: Date | null;
  snapshot: Partial<AlertSnapshot> | null;
  settings: SettingsRow[] | null;
  active:
    | { name: string; label: string; state: ActiveAlert['state']; since: number; told: boolean }[]
    | null;
}

interface SettingsRow {
  name: string;
  threshold: number | null;
  for_seconds: number | null;
  off: boolean;
  silenced_until: number | null;
  silence_note: string | null;
}

const settingsColumns = `'name', s.name, 'threshold', s.threshold, 'for_seconds', s.for_seconds,
  'off', s.off, 'silenced_until', extract(epoch from s.silenced_until)::float8 * 1000,
  'silence_note', s.silence_note`;

/** All that is known of alerts, with one statement. The tables hold a row for each rule, and 20 for some. */
export async function readAlertBook(db: Queryable, now: Instant): Promise<AlertBook> {
  const [row] = await db.query<BookRow>(
    `select extract(epoch from coalesce($1::timestamptz, now()))::float8 * 1000 as now_ms,
       e.evaluated_at, e.snapshot,
       (select json_agg(json_build_object(${settingsColumns})) from sluice.alert_settings s)
         as settings,
       (
         select json_agg(json_build_object('name', a.name, 'label', a.label, 'state', a.state,
           'since', extract(epoch from a.since)::float8 * 1000, 'told', a.is_told)
           order by a.name, a.label)
         from sluice.alerts a
       ) as active
     from (values (true)) as one (only_row) left join sluice.alert_evaluation e using (only_row)`,
    [now],
  );
  if (row === undefined) throw new Error('a row of constants was not answered');
  return {
    evaluatedAt: row.evaluated_at,
    snapshot: { ...emptySnapshot, ...row.snapshot },
    settings: new Map((row.settings ?? []).map((one) => [one.name, toSettings(one)])),
    active: activeByName(row.active ?? []),
    nowMs: row.now_ms,
  };
}

function toSettings(row: SettingsRow): StoredSettings {
  return {
    threshold: row.threshold,
    forSeconds: row.for_seconds,
    off: row.off,
    silencedUntilMs: row.silenced_until,
    silenceNote: row.silence_note,
  };
}

function activeByName(rows: NonNullable<BookRow['active']>): Map<string, ActiveAlert[]> {
  const byName = new Map<string, ActiveAlert[]>();
  for (const { name, label, state, since: sinceMs, told: isTold } of rows) {
    const others = byName.get(name) ?? [];
    byName.set(name, [...others, { label, state, sinceMs, isTold }]);
  }
  return byName;
}

export interface AlertChange {
  readonly name: string;
  readonly label: string;
  /** Null: it is well now. */
  readonly next: ActiveAlert | null;
}

/** For a webhook. */
export interface NewMessage {
  readonly messageId: string;
  readonly target: string;
  readonly eventType: string;
  readonly eventJson: string;
}

export interface Evaluation {
  /** As `takeEvaluatingTurn` answered. */
  readonly turn: number;
  readonly snapshot: AlertSnapshot;
  readonly changes: readonly AlertChange[];
  readonly messages: readonly NewMessage[];
}

/**
 * Writes what an evaluation found, and the messages about it, in one statement. False: another evaluation began
 * meanwhile, and nothing was written. The row of the turn is locked until the commit, so that a server that takes the
 * turn reads what was written before.
 */
export async function writeEvaluation(
  db: Queryable,
  { turn, snapshot, changes, messages }: Evaluation,
  now: Instant,
): Promise<boolean> {
  const kept = changes.flatMap(({ name, next }) => (next === null ? [] : [{ name, ...next }]));
  const gone = changes.filter(({ next }) => next === null);
  const rows = await db.query(
    `with turn as (
       update sluice.alert_evaluation
       set renewed_at = instant, evaluated_at = instant, snapshot = $3::json
       from coalesce($2::timestamptz, now()) as instant
       where turn = $1::bigint
       returning instant
     ), gone as (
       delete from sluice.alerts a
       using turn, unnest($4::text[], $5::text[]) as ended (name, label)
       where a.name = ended.name and a.label = ended.label
     ), kept as (
       insert into sluice.alerts as a (name, label, state, since, is_told)
       select one.* from turn, unnest(
         $6::text[], $7::text[], $8::text[], $9::timestamptz[], $10::boolean[]
       ) as one (name, label, state, since, is_told)
       on conflict (name, label) do update set
         state = excluded.state, since = excluded.since, is_told = excluded.is_told
     ), messages as (
       insert into sluice.webhook_deliveries
         (message_id, target, event_type, event, created_at, due_at)
       select one.message_id, one.target, one.event_type, one.event::json, turn.instant, turn.instant
       from turn, unnest($11::text[], $12::text[], $13::text[], $14::text[])
         with ordinality as one (message_id, target, event_type, event, place)
       order by one.place
     )
     select from turn`,
    [
      turn,
      now,
      JSON.stringify(snapshot),
      column(gone, ({ name }) => name),
      column(gone, ({ label }) => label),
      column(kept, ({ name }) => name),
      column(kept, ({ label }) => label),
      column(kept, ({ state }) => state),
      column(kept, ({ sinceMs }) => new Date(sinceMs)),
      column(kept, ({ isTold }) => isTold),
      column(messages, ({ messageId }) => messageId),
      column(messages, ({ target }) => target),
      column(messages, ({ eventType }) => eventType),
      column(messages, ({ eventJson }) => eventJson),
    ],
  );
  return rows.length > 0;
}

export interface AlertChoice {
  readonly threshold: number | null;
  readonly forSeconds: number | null;
  readonly off: boolean;
}

/** Replaces what was changed before, and leaves a silence as it is. */
export async function putAlertSettings(
  db: Queryable,
  name: string,
  { threshold, forSeconds, off }: AlertChoice,
): Promise<void> {
  await db.query(
    `insert into sluice.alert_settings (name, threshold, for_seconds, off)
     values ($1, $2::float8, $3::integer, $4::boolean)
     on conflict (name) do update set
       threshold = excluded.threshold, for_seconds = excluded.for_seconds, off = excluded.off`,
    [name, threshold, forSeconds, off],
  );
}

/** For 0 seconds: the silence is over. */
export async function silenceAlert(
  db: Queryable,
  name: string,
  { seconds, note }: { readonly seconds: number; readonly note: string | null },
  now: Instant,
): Promise<void> {
  await db.query(
    `insert into sluice.alert_settings (name, silenced_until, silence_note)
     select $1, case when $2::float8 > 0
       then coalesce($4::timestamptz, now()) + $2::float8 * interval '1 s' end, $3::text
     on conflict (name) do update set
       silenced_until = excluded.silenced_until, silence_note = excluded.silence_note`,
    [name, seconds, seconds > 0 ? note : null, now],
  );
}
