import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { IsDateTime, Set as setFormat } from 'typebox/format';
import { Settings } from 'typebox/system';
import type { FieldError } from '../domain/errors.js';
import { isKeepable } from '../domain/instant.js';
import { toFieldErrors } from './field-errors.js';

setFormat('date-time', isTimestamp);
// By default eight are kept: too few to see which alternative of a union was meant.
Settings.Set({ maxErrors: 64 });

/** Null when the value is as the schema says. `path` is where the value stands in the request. */
export type Check = (value: unknown, path?: string) => FieldError[] | null;

export function compileCheck(schema: TSchema): Check {
  const validator = Compile(schema);
  return (value, path = '') =>
    validator.Check(value) ? null : toFieldErrors(schema, validator.Errors(value), path);
}

/** Years that Postgres and every client can write; a leap second is no instant to JavaScript. */
function isTimestamp(text: string): boolean {
  return IsDateTime(text) && isKeepable(new Date(text).getTime());
}
