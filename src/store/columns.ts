import type { Held } from '../protocol/api.js';

/** A column of a batch, as an array parameter. */
export function column<Item, Value>(
  items: readonly Item[],
  pick: (item: Item) => Value,
): readonly Value[] {
  return items.map(pick);
}

/** As `column`, but null when no item has a value: then nothing is sent, parsed or stored for it. */
export function sparseColumn<Item, Value>(
  items: readonly Item[],
  pick: (item: Item) => Value | null,
): readonly (Value | null)[] | null {
  return items.some((item) => pick(item) !== null) ? items.map(pick) : null;
}

/**
 * A Postgres array as text: a parameter can't be an array of arrays of different lengths, so a
 * batch sends them as texts that the statement casts.
 */
export function arrayLiteral(values: readonly string[]): string {
  if (values.length === 0) return '{}';
  const quoted = values.map((value) => `"${value.replaceAll(/["\\]/g, '\\$&')}"`);
  return `{${quoted.join(',')}}`;
}

/** What fences a write: ids and leases, as two parameters. */
export function heldColumns(held: readonly Held[]): unknown[] {
  return [column(held, (item) => item.taskId), column(held, (item) => item.lease)];
}
