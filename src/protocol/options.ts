import type { FieldError } from '../domain/errors.js';
import { invalidRequest } from './problem-wire.js';
import { pointerSegment, unknownField } from './unknown-field.js';

/** What the value of an option must be; a list names all values. */
export type Kind =
  'any' | 'array' | 'boolean' | 'function' | 'number' | 'object' | 'string' | readonly string[];

/** Has every option, so that none can be forgotten. */
export type KindsOf<Options> = { readonly [Name in keyof Options]-?: Kind };

/**
 * Throws for options that never become a request: those that are unknown, and those of another kind. In the words
 * in which a request is refused.
 */
export function checkOptions<Options>(kinds: KindsOf<Options>, given: Options): void {
  const errors = optionErrors(kinds, given);
  if (errors.length > 0) throw invalidRequest(errors);
}

/** Throws for names that are not known. On the hot path: what is right costs a look at each name. */
export function checkNames(known: Readonly<Record<string, unknown>>, given: object): void {
  for (const name in given) {
    if (!Object.hasOwn(known, name)) throw invalidRequest(unknownErrors(known, given));
  }
}

function unknownErrors(known: Readonly<Record<string, unknown>>, given: object): FieldError[] {
  const names = Object.keys(known);
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known, name));
  return unknown.map((name) => ({
    path: `/${pointerSegment(name)}`,
    message: unknownField(name, names),
  }));
}

export function optionErrors<Options>(kinds: KindsOf<Options>, given: Options): FieldError[] {
  if (!isKind(given, 'object')) return [{ path: '/options', message: 'must be an object' }];
  const known = kinds as Readonly<Record<string, Kind>>;
  return Object.entries(given as Readonly<Record<string, unknown>>).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const path = `/${pointerSegment(name)}`;
    const kind = Object.hasOwn(known, name) ? known[name] : undefined;
    if (kind === undefined) return [{ path, message: unknownField(name, Object.keys(known)) }];
    return isKind(value, kind) ? [] : [{ path, message: `must be ${kindText(kind)}` }];
  });
}

function isKind(value: unknown, kind: Kind): boolean {
  if (typeof kind !== 'string') return kind.includes(value as string);
  switch (kind) {
    case 'any':
      return true;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    default:
      return typeof value === kind;
  }
}

function kindText(kind: Kind): string {
  if (typeof kind !== 'string') return `one of ${kind.join(', ')}`;
  if (kind === 'boolean') return 'true or false';
  return kind === 'array' || kind === 'object' ? `an ${kind}` : `a ${kind}`;
}
