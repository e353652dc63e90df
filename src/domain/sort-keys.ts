import type { JsonValue } from './json.js';

/** The same value with the keys of every object in order: equal values have equal JSON. */
export function sortKeys(value: JsonValue): JsonValue {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(sortKeys);
  const entries = Object.entries(value as Record<string, JsonValue>);
  return Object.fromEntries(
    entries
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sortKeys(member)] as const),
  );
}
