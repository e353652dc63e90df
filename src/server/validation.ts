import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { IsDateTime, Set as setFormat } from 'typebox/format';
import { Settings } from 'typebox/system';
import type { FieldError } from '../domain/errors.js';
import { invalidRequest } from '../protocol/problem-wire.js';
import { toFieldErrors } from './field-errors.js';

setFormat('date-time', isTimestamp);
// By default eight are kept: too few to see which alternative of a union was meant.
Settings.Set({ maxErrors: 64 });

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

/** With it, and the years that a deadline may add, no answer gets a year of five digits. */
const endOfTimeMs = Date.UTC(9900);

/** Years that Postgres and every client can write; a leap second is no instant to JavaScript. */
function isTimestamp(text: string): boolean {
  const ms = IsDateTime(text) ? new Date(text).getTime() : NaN;
  return ms >= 0 && ms < endOfTimeMs;
}
