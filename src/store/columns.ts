import type { Held } from '../protocol/workers-api.js';

/**
 * A column of a batch, as the text of a Postgres array. Written here and not by the driver, which
 * takes 0.12 µs for every element; this takes 0.04 for a number and 0.10 for an id.
 */
export function column<Item>(items: readonly Item[], pick: (item: Item) => Value): string {
  let last: Value = null;
  let text = 'null';
  const texts = items.map((item) => {
    const value = pick(item);
    // Most of a batch is of one queue and one type.
    if (value !== last) text = elementText((last = value));
    return text;
  });
  return `{${texts.join(',')}}`;
}

/** As `column`, but null when no item has a value: then nothing is sent, parsed or stored for it. */
export function sparseColumn<Item>(
  items: readonly Item[],
  pick: (item: Item) => Value,
): string | null {
  return items.some((item) => pick(item) !== null) ? column(items, pick) : null;
}

/**
 * A column of JSON documents, as one JSON array. As texts in a Postgres array every quote in them
 * would be escaped here and unescaped there: 20 µs instead of 10 for a prompt of 1 KB.
 */
export function jsonColumn<Item>(
  items: readonly Item[],
  pick: (item: Item) => string | null,
): string | null {
  if (!items.some((item) => pick(item) !== null)) return null;
  return `[${items.map((item) => pick(item) ?? 'null').join(',')}]`;
}

type Value = string | number | boolean | Date | Buffer | null;

function elementText(value: Value): string {
  if (typeof value === 'string') return quoted(value);
  if (value === null) return 'null';
  if (value instanceof Date) return quoted(value.toISOString());
  if (Buffer.isBuffer(value)) return quoted(`\\x${value.toString('hex')}`);
  return String(value);
}

function quoted(text: string): string {
  return special.test(text) ? `"${text.replaceAll(specials, '\\$&')}"` : `"${text}"`;
}

const special = /["\\]/;
const specials = /["\\]/g;

/**
 * A list inside a column: arrays of different lengths make no array of arrays, so a batch sends
 * them as texts that the statement casts.
 */
export function arrayLiteral(values: readonly string[]): string {
  return column(values, (value) => value);
}

/** As a text of a column: null when there is nothing in it. */
export function listOrNull(values: readonly string[]): string | null {
  return values.length === 0 ? null : column(values, (value) => value);
}

/** Postgres refuses a `real` that is too close to zero for it, where this makes it zero. */
export function realOrNull(value: number | null): number | null {
  return value === null ? null : Math.fround(value);
}

/** What fences a write: ids and leases, as two parameters. */
export function heldColumns(held: readonly Held[]): unknown[] {
  return [column(held, (item) => item.taskId), column(held, (item) => item.lease)];
}
