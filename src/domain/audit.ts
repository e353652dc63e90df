import type { JsonObject, JsonValue } from './json.js';
import { storableText } from './storable-text.js';

/** What is written down. One for each kind of change that people want to know about later. */
export const auditActions = [
  'queue.put',
  'queue.change',
  'queue.pause',
  'queue.resume',
  'limit.put',
  'limit.delete',
  'key.create',
  'key.revoke',
  'session.sign_in',
  'session.sign_out',
  'session.end',
  'worker.drain',
  'alert.put',
  'alert.silence',
  'task.cancel',
  'task.change',
  'task.replay',
  'tasks.cancel',
  'tasks.replay',
  'tasks.reprioritise',
  'dead_letters.replay',
] as const;
export type AuditAction = (typeof auditActions)[number];

/**
 * `key`: a program with an API key. `session`: a person who signed in. `local`: somebody on the machine of the server or
 * at its database. `process`: the program that embeds the engine.
 */
export type ActorKind = 'key' | 'session' | 'local' | 'process';

export interface Actor {
  readonly kind: ActorKind;
  /** The API key, also of a session. */
  readonly keyId: string | null;
  readonly keyName: string | null;
  readonly sessionId: string | null;
  /** Of an HTTP request. */
  readonly address: string | null;
  /** The person that a program acts for, as that program says. */
  readonly onBehalfOf?: string;
}

export const thisProcess: Actor = {
  kind: 'process',
  keyId: null,
  keyName: null,
  sessionId: null,
  address: null,
};

export type AuditChanges = Readonly<
  Record<string, { readonly from: JsonValue; readonly to: JsonValue }>
>;

/** What is longer is cut: a name or a list that somebody invented must not fill the table. */
const maxValueLength = 1_000;

/** Only what differs. Null: there is nothing, before or after. */
export function changesBetween(before: JsonObject | null, after: JsonObject | null): AuditChanges {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const pairs = [...names].map((name) => ({
    name,
    from: before?.[name] ?? null,
    to: after?.[name] ?? null,
  }));
  return Object.fromEntries(
    pairs
      .filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to))
      .map(({ name, from, to }) => [name, { from: bounded(from), to: bounded(to) }]),
  );
}

export function boundedDetails(details: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(details).map(([name, value]) => [name, bounded(value)]));
}

function bounded(value: JsonValue): JsonValue {
  const text = JSON.stringify(value);
  return text.length <= maxValueLength ? value : `${storableText(text, maxValueLength)}…`;
}
