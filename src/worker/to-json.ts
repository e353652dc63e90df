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
  /** Where it is: the keys from the top. */
  readonly path: (string | number)[];
  /** Counts what the JSON takes at least. */
  bytesLeft: number;
}

/**
 * The JSON of a value, as it will be read again. `JSON.stringify` alone drops functions and turns
 * NaN into null in silence, and does not say where it met a cycle. What is certainly larger than
 * `maxBytes` is refused as soon as that is known: nobody should wait while gigabytes are copied.
 */
export function toJson(value: unknown, maxBytes = Infinity): JsonValue {
  return convert(value, { above: new Set(), path: [], bytesLeft: maxBytes }) ?? null;
}

function convert(value: unknown, walk: Walk): JsonValue | undefined {
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
      throw refusal(String(value), walk);
    case 'bigint':
      throw refusal('A BigInt', walk);
    case 'function':
      throw refusal('A function', walk);
    case 'symbol':
      throw refusal('A symbol', walk);
    case 'object':
      return value === null ? null : convertObject(value, walk);
  }
}

function convertObject(value: object, walk: Walk): JsonValue | undefined {
  if (walk.above.has(value)) throw refusal('A value that contains itself', walk);
  if (ArrayBuffer.isView(value)) lookAhead(value, walk);
  walk.above.add(value);
  const converted = hasToJson(value)
    ? convertAnswer(value, value.toJSON(), walk)
    : convertMembers(value, walk);
  walk.above.delete(value);
  return converted;
}

/** What `toJSON` answers is not asked for its own: it may well be the object itself. */
function convertAnswer(asked: object, answer: unknown, walk: Walk): JsonValue | undefined {
  if (typeof answer !== 'object' || answer === null) return convert(answer, walk);
  if (answer === asked) return convertMembers(answer, walk);
  if (walk.above.has(answer)) throw refusal('A value that contains itself', walk);
  walk.above.add(answer);
  const converted = convertMembers(answer, walk);
  walk.above.delete(answer);
  return converted;
}

function convertMembers(value: object, walk: Walk): JsonValue {
  if (Array.isArray(value)) return convertItems(value, walk);
  const object: Record<string, JsonValue> = {};
  for (const key of Object.keys(value)) {
    const converted = convertMember((value as Record<string, unknown>)[key], key, walk);
    if (converted === undefined) continue;
    spend(key.length + 4, walk);
    // A key like any other here, which it is not in an assignment.
    if (key === '__proto__') Object.defineProperty(object, key, { ...plain, value: converted });
    else object[key] = converted;
  }
  return object;
}

const plain = { enumerable: true, writable: true, configurable: true };

function convertItems(items: readonly unknown[], walk: Walk): JsonValue {
  spend(items.length, walk);
  return Array.from(items, (item, index) => convertMember(item, index, walk) ?? null);
}

function convertMember(value: unknown, key: string | number, walk: Walk): JsonValue | undefined {
  walk.path.push(key);
  const converted = convert(value, walk);
  walk.path.pop();
  return converted;
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

function refusal(what: string, { path }: Walk): NotJsonError {
  const where = path.length === 0 ? '' : ` at /${path.join('/')}`;
  return new NotJsonError(`${what}${where} is not JSON`);
}
