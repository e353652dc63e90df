import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import type { FieldError } from '../domain/errors.js';
import { compileCheck, type Check } from '../protocol/compile-check.js';
import { invalidRequest } from '../protocol/problem-wire.js';

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
