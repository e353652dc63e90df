import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { FieldError } from '../domain/errors.js';

export type CheckedInput =
  | { readonly kind: 'valid'; readonly value: unknown }
  | { readonly kind: 'invalid'; readonly errors: readonly FieldError[] };

/** A list of a million wrong items says no more in its millionth issue. */
const maxIssues = 100;

export async function checkInput(schema: StandardSchemaV1, value: unknown): Promise<CheckedInput> {
  const checked = await schema['~standard'].validate(value);
  return checked.issues === undefined
    ? { kind: 'valid', value: checked.value }
    : { kind: 'invalid', errors: checked.issues.slice(0, maxIssues).map(toFieldError) };
}

export function summary(errors: readonly FieldError[]): string {
  return errors
    .map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
    .join('; ');
}

function toFieldError({ path = [], message }: StandardSchemaV1.Issue): FieldError {
  const keys = path.map((segment) => (typeof segment === 'object' ? segment.key : segment));
  return { path: keys.map((key) => `/${String(key)}`).join(''), message };
}
