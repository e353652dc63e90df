import type { JsonValue } from '../domain/json.js';

/** Not representable in JSON: what, and where. */
export class NotJsonError extends TypeError {
  override readonly name = 'NotJsonError';
}

/**
 * The JSON of a value, as it will be read again. `JSON.stringify` alone drops functions and turns
 * NaN into null in silence, and does not say where it met a cycle.
 */
export function toJson(value: unknown): JsonValue {
  return convert(value, '', new Set()) ?? null;
}

function convert(value: unknown, path: string, above: Set<object>): JsonValue | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'undefined':
      return undefined;
    case 'number':
      // JSON knows no negative zero.
      if (Number.isFinite(value)) return value === 0 ? 0 : value;
      throw refusal(String(value), path);
    case 'bigint':
      throw refusal('A BigInt', path);
    case 'function':
      throw refusal('A function', path);
    case 'symbol':
      throw refusal('A symbol', path);
    case 'object':
      return value === null ? null : convertObject(value, path, above);
  }
}

function convertObject(value: object, path: string, above: Set<object>): JsonValue | undefined {
  if (above.has(value)) throw refusal('A value that contains itself', path);
  above.add(value);
  const converted = convertMembers(value, path, above);
  above.delete(value);
  return converted;
}

function convertMembers(value: object, path: string, above: Set<object>): JsonValue | undefined {
  if (hasToJson(value)) return convert(value.toJSON(), path, above);
  if (Array.isArray(value)) {
    return value.map((item, index) => convert(item, `${path}/${index}`, above) ?? null);
  }
  const fields: [string, JsonValue][] = [];
  for (const [key, field] of Object.entries(value)) {
    const converted = convert(field, `${path}/${key}`, above);
    if (converted !== undefined) fields.push([key, converted]);
  }
  // Not an object literal: `__proto__` is a key like any other here.
  return Object.fromEntries(fields);
}

function hasToJson(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}

function refusal(what: string, path: string): NotJsonError {
  return new NotJsonError(`${what}${path === '' ? '' : ` at ${path}`} is not JSON`);
}
