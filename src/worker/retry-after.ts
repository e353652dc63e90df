import { isObject, type Fields } from './error-fields.js';

/** What the headers of an answer say about when to come again; null: nothing. */
export function retryAfterSecondsOf(error: Fields, nowMs: number): number | null {
  const within = isObject(error.response) ? error.response.headers : undefined;
  const headers = [...entriesOf(error.headers), ...entriesOf(within)];
  const milliseconds = numberIn(valueOf('retry-after-ms', headers));
  if (milliseconds !== null) return milliseconds / 1000;
  const after = valueOf('retry-after', headers);
  return numberIn(after) ?? secondsUntil(after, nowMs);
}

type Entry = readonly [unknown, unknown];

/** Of a Headers, a Map, or a plain object. */
function entriesOf(headers: unknown): Entry[] {
  if (!isObject(headers)) return [];
  const entries: unknown[] = isIterable(headers) ? [...headers] : Object.entries(headers);
  return entries.filter(isEntry);
}

function valueOf(header: string, entries: readonly Entry[]): string {
  const found = entries.find(([name]) => String(name).toLowerCase() === header);
  return found === undefined ? '' : String(found[1]).trim();
}

function numberIn(text: string): number | null {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
}

/** Only what ends in GMT is an HTTP date: `Date.parse` makes one of "-5" too. */
function secondsUntil(text: string, nowMs: number): number | null {
  const atMs = text.endsWith('GMT') ? Date.parse(text) : NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, (atMs - nowMs) / 1000);
}

function isIterable(value: object): value is Iterable<unknown> {
  return Symbol.iterator in value;
}

function isEntry(value: unknown): value is Entry {
  return Array.isArray(value) && value.length === 2;
}
