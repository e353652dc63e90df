import { SluiceError, type FieldError } from '../domain/errors.js';
import { timestampToWire } from './common-wire.js';
import { describeErrors, invalidRequest, type Refusal } from './problem-wire.js';
import { pointerSegment, unknownField } from './unknown-field.js';

/** A field of a request: what the wire calls it, and how its value is written there. */
export interface Field {
  readonly wire: string;
  /** Absent: as it is. Leaves what is not of the right type as it is: the schema refuses it. */
  readonly write?: (value: unknown) => unknown;
  /** Of each object in a list. */
  readonly items?: Fields;
  /** Of an object. */
  readonly members?: Fields;
}

export type Fields = Readonly<Record<string, string | Field>>;

/** Has every field of the request, so that none can be forgotten. */
export type FieldsOf<Request> = { readonly [Name in keyof Request]-?: string | Field };

/**
 * The request as the wire has it. Names are checked here, by what TypeScript calls them: written in the wire's
 * way they would be taken for known. Values are left to the schema.
 */
export function writeRequest(fields: Fields, given: unknown): unknown {
  const errors: FieldError[] = [];
  const wire = writeObject(fields, given, '', errors);
  if (errors.length > 0) throw invalidRequest(errors);
  return wire;
}

/** Throws for names that are not among the fields. */
export function refuseUnknown(fields: Fields, given: unknown): void {
  writeRequest(fields, given);
}

export function timestampFieldToWire(value: unknown): unknown {
  if (!(value instanceof Date)) return value;
  return Number.isNaN(value.getTime()) ? String(value) : timestampToWire(value);
}

/** The same errors, with paths in the names of TypeScript. */
export function callersErrors(fields: Fields, errors: readonly FieldError[]): FieldError[] {
  return errors.map(({ path, message }) => ({ path: callersPath(fields, path), message }));
}

/** A refusal of the schema, in the names of whoever called. Anything else stays what it is. */
export function callersError(fields: Fields, error: unknown): unknown {
  if (!(error instanceof SluiceError) || error.errors === null) return error;
  const { code, errors, retryAfterSeconds, ceiling } = error;
  const renamed = callersErrors(fields, errors);
  return new SluiceError(code, callersDetail(error.message, errors, renamed), {
    errors: renamed,
    cause: error.cause,
    ...(retryAfterSeconds === null ? {} : { retryAfterSeconds }),
    ...(ceiling === null ? {} : { ceiling }),
  });
}

/** One answer of many. `place` takes from a path where the draft stood in its request. */
export function callersRefusal<Refused extends Refusal>(
  fields: Fields,
  refused: Refused,
  place: (path: string) => string = (path) => path,
): Refused {
  const { errors, detail } = refused;
  if (errors === undefined) return refused;
  const alone = errors.map(({ path, message }) => ({ path: place(path), message }));
  const renamed = callersErrors(fields, alone);
  return { ...refused, errors: renamed, detail: callersDetail(detail, errors, renamed) };
}

/** A detail that lists its errors lists them by their new paths; a sentence of its own stays. */
function callersDetail(
  detail: string,
  errors: readonly FieldError[],
  renamed: readonly FieldError[],
): string {
  return detail === describeErrors(errors) ? describeErrors(renamed) : detail;
}

export async function inCallersNames<Answer>(
  fields: Fields,
  call: () => Promise<Answer>,
): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    throw callersError(fields, error);
  }
}

function writeObject(fields: Fields, given: unknown, path: string, errors: FieldError[]): unknown {
  if (!isObject(given)) return given;
  const wire: Record<string, unknown> = {};
  for (const name of Object.keys(given)) {
    const value = keptByJson(given[name]);
    if (value === undefined) continue;
    const at = `${path}/${pointerSegment(name)}`;
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field === undefined) {
      errors.push({ path: at, message: unknownField(name, Object.keys(fields)) });
    } else if (typeof field === 'string') {
      wire[field] = value;
    } else {
      const written = writeValue(field, value, at, errors);
      if (written !== undefined) wire[field.wire] = written;
    }
  }
  return wire;
}

/**
 * JSON writes NaN and Infinity as null, which would take a limit away, and leaves functions out, which would give it its
 * default. In their place stands what no field takes, so that the schema refuses it in its own words.
 */
function keptByJson(value: unknown): unknown {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? value : refusedByAll;
    case 'bigint':
    case 'function':
    case 'symbol':
      return refusedByAll;
    default:
      return value;
  }
}

const refusedByAll: readonly unknown[] = [null];

function writeValue(field: Field, value: unknown, path: string, errors: FieldError[]): unknown {
  const { write, items, members } = field;
  if (write !== undefined) return write(value);
  if (Array.isArray(value)) {
    if (items === undefined) return value;
    return value.map((item, index) => writeObject(items, item, `${path}/${index}`, errors));
  }
  return members === undefined ? value : writeObject(members, value, path, errors);
}

function callersPath(fields: Fields, path: string): string {
  const segments = callersSegments(fields, path.split('/').slice(1));
  return segments.map((segment) => `/${segment}`).join('');
}

function callersSegments(fields: Fields, segments: readonly string[]): readonly string[] {
  const [first, ...rest] = segments;
  const found = Object.entries(fields).find(([, field]) => wireName(field) === first);
  if (found === undefined) return segments;
  const [name, field] = found;
  return [name, ...innerSegments(field, rest)];
}

function innerSegments(field: string | Field, rest: readonly string[]): readonly string[] {
  if (typeof field === 'string') return rest;
  const [first = '', ...inside] = rest;
  if (field.items !== undefined && /^\d+$/.test(first)) {
    return [first, ...callersSegments(field.items, inside)];
  }
  return field.members === undefined ? rest : callersSegments(field.members, rest);
}

function wireName(field: string | Field): string {
  return typeof field === 'string' ? field : field.wire;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
