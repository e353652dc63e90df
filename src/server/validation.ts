import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import { IsDateTime, Set as setFormat } from 'typebox/format';
import { Settings } from 'typebox/system';
import type { FieldError } from '../domain/errors.js';
import { patternMeanings } from '../protocol/common-schema.js';
import { invalidRequest } from '../protocol/problem-wire.js';

setFormat('date-time', isTimestamp);
// By default eight are kept: too few to see which alternative of a union was meant.
Settings.Set({ maxErrors: 64 });

const typeNames: Readonly<Record<string, string>> = {
  integer: 'a whole number',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
  null: 'null',
};

/** Null when the value is as the schema says. `path` is where the value stands in the request. */
export type Check = (value: unknown, path?: string) => FieldError[] | null;

export function compileCheck(schema: TSchema): Check {
  const validator = Compile(schema);
  return (value, path = '') =>
    validator.Check(value) ? null : toFieldErrors(validator.Errors(value), path);
}

/** Bodies are taken as they are; in the path and the query everything is text until read here. */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const check = compileCheck(schema);
  if (httpPart === 'body') return bodyValidator(check);
  const integers = integerProperties(schema);
  return (value: unknown) => {
    for (const key of integers) readInteger(value as Record<string, unknown>, key);
    return answer(check(value), value);
  };
};

/** No body is the same as one that names nothing, where nothing is needed. */
export function bodyValidator(
  check: Check,
): (value: unknown) => { value: unknown } | { error: Error } {
  const whenAbsent = check({}) === null ? {} : null;
  return (value) => {
    const body = value ?? whenAbsent;
    return answer(check(body), body);
  };
}

function answer(
  errors: FieldError[] | null,
  value: unknown,
): { value: unknown } | { error: Error } {
  return errors === null ? { value } : { error: invalidRequest(errors) };
}

function integerProperties(schema: TSchema): string[] {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string }> };
  return Object.keys(properties).filter((key) => properties[key]?.type === 'integer');
}

function readInteger(values: Record<string, unknown>, key: string): void {
  const text = values[key];
  if (typeof text === 'string' && /^-?\d{1,15}$/.test(text)) values[key] = Number(text);
}

/** Years that Postgres and every client can write; a leap second is no instant to JavaScript. */
function isTimestamp(text: string): boolean {
  return IsDateTime(text) && new Date(text).getTime() >= 0;
}

/** One error for each field, in the words of whoever must correct it. */
function toFieldErrors(errors: TLocalizedValidationError[], path: string): FieldError[] {
  const messages = new Map<string, string>();
  for (const error of likeliest(errors)) {
    for (const [at, message] of describe(error)) {
      if (!messages.has(at)) messages.set(at, message);
    }
  }
  return [...messages].map(([at, message]) => ({ path: `${path}${at}`, message }));
}

function describe(error: TLocalizedValidationError): [path: string, message: string][] {
  const { instancePath } = error;
  switch (error.keyword) {
    case 'boolean':
      return [[instancePath, 'is not a known field']];
    case 'type': {
      const types = [error.params.type].flat().map((type) => typeNames[type] ?? type);
      return [[instancePath, `must be ${types.join(' or ')}`]];
    }
    case 'required':
      return error.params.requiredProperties.map((name) => [
        `${instancePath}/${name}`,
        'is needed',
      ]);
    case 'enum':
      return [[instancePath, `must be one of ${error.params.allowedValues.join(', ')}`]];
    case 'pattern':
      return [[instancePath, patternMeanings.get(String(error.params.pattern)) ?? error.message]];
    case 'format':
      return [[instancePath, 'must be a time as RFC 3339 writes it, from 1970 on']];
    case 'minProperties':
      return [[instancePath, `must name at least ${error.params.limit} field`]];
    // The fields themselves are told as `boolean`, the alternatives one by one.
    case 'additionalProperties':
    case 'anyOf':
      return [];
    default:
      return [[instancePath, error.message]];
  }
}

/**
 * Of the alternatives of a union, the one that was probably meant: the one whose own shape fits
 * best. Without this a misspelt field would be told as a missing one of every alternative.
 */
function likeliest(errors: TLocalizedValidationError[]): TLocalizedValidationError[] {
  const unions = errors.filter(({ keyword }) => keyword === 'anyOf');
  return unions.reduce((kept, union) => {
    const branches = new Map<string, TLocalizedValidationError[]>();
    const prefix = `${union.schemaPath}/anyOf/`;
    for (const error of kept) {
      if (!error.schemaPath.startsWith(prefix)) continue;
      const branch = error.schemaPath.slice(prefix.length).split('/', 1)[0] ?? '';
      branches.set(branch, [...(branches.get(branch) ?? []), error]);
    }
    const misfit = (branch: TLocalizedValidationError[]): number =>
      branch.filter(({ instancePath }) => instancePath === union.instancePath).length;
    const [best] = [...branches.values()].sort((a, b) => misfit(a) - misfit(b));
    return kept.filter((error) => !error.schemaPath.startsWith(prefix) || best?.includes(error));
  }, errors);
}
