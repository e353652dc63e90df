import type { JsonValue } from '../domain/json.js';

/** Not representable in JSON: what, and where. */
export class NotJsonError extends TypeError {
  override readonly name = 'NotJsonError';
}

/** Its JSON takes more bytes than allowed. */
export class TooLargeError extends RangeError {
  override readonly name = 'TooLargeError';
}

interface Walk {
  readonly above: Set<object>;
  /** Counts what the JSON takes at least. */
  bytesLeft: number;
}

/**
 * The JSON of a value, as it will be read again. `JSON.stringify` alone drops functions and turns
 * NaN into null in silence, and does not say where it met a cycle. What is certainly larger than
 * `maxBytes` is refused as soon as that is known: nobody should wait while gigabytes are copied.
 */
export function toJson(value: unknown, maxBytes = Infinity): JsonValue {
  return convert(value, '', { above: new Set(), bytesLeft: maxBytes }) ?? null;
}

function convert(value: unknown, path: string, walk: Walk): JsonValue | undefined {
  switch (typeof value) {
    case 'string':
      spend(value.length + 2, walk);
      return value;
    case 'boolean':
      spend(4, walk);
      return value;
    case 'undefined':
      return undefined;
    case 'number':
      spend(1, walk);
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
      return value === null ? null : convertObject(value, path, walk);
  }
}

function convertObject(value: object, path: string, walk: Walk): JsonValue | undefined {
  if (walk.above.has(value)) throw refusal('A value that contains itself', path);
  if (ArrayBuffer.isView(value)) lookAhead(value, walk);
  walk.above.add(value);
  const converted = hasToJson(value)
    ? convertAnswer(value, value.toJSON(), path, walk)
    : convertMembers(value, path, walk);
  walk.above.delete(value);
  return converted;
}

/** What `toJSON` answers is not asked for its own: it may well be the object itself. */
function convertAnswer(
  asked: object,
  answer: unknown,
  path: string,
  walk: Walk,
): JsonValue | undefined {
  if (typeof answer !== 'object' || answer === null) return convert(answer, path, walk);
  if (answer === asked) return convertMembers(answer, path, walk);
  if (walk.above.has(answer)) throw refusal('A value that contains itself', path);
  walk.above.add(answer);
  const converted = convertMembers(answer, path, walk);
  walk.above.delete(answer);
  return converted;
}

function convertMembers(value: object, path: string, walk: Walk): JsonValue {
  if (Array.isArray(value)) return convertItems(value, path, walk);
  const fields: [string, JsonValue][] = [];
  for (const key of Object.keys(value)) {
    const converted = convert((value as Record<string, unknown>)[key], `${path}/${key}`, walk);
    if (converted === undefined) continue;
    spend(key.length + 4, walk);
    fields.push([key, converted]);
  }
  // Not an object literal: `__proto__` is a key like any other here.
  return Object.fromEntries(fields);
}

function convertItems(items: readonly unknown[], path: string, walk: Walk): JsonValue {
  spend(items.length, walk);
  return Array.from(items, (item, index) => convert(item, `${path}/${index}`, walk) ?? null);
}

function spend(bytes: number, walk: Walk): void {
  walk.bytesLeft -= bytes;
  if (walk.bytesLeft < 0) throw new TooLargeError('Its JSON is larger than allowed');
}

/** Before its elements become as many numbers and keys: a picture of 10 MB would take a gigabyte. */
function lookAhead(view: ArrayBufferView, walk: Walk): void {
  const elements = 'length' in view ? Number(view.length) : 0;
  spend(2 * elements, { ...walk });
}

function hasToJson(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}

function refusal(what: string, path: string): NotJsonError {
  return new NotJsonError(`${what}${path === '' ? '' : ` at ${path}`} is not JSON`);
}
