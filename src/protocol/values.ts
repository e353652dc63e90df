import type { FieldError } from '../domain/errors.js';
import {
  labelMeaning,
  labelPattern,
  nameMeaning,
  namePattern,
  uuidMeaning,
  uuidPattern,
} from './patterns.js';
import { invalidRequest } from './problem-wire.js';

/**
 * Values that are checked where no schema is at hand: in the path of a call, where an empty name would make another
 * path and `undefined` would be a name, and in the definition of a task. `path` says where a refusal points to.
 */
export function checkName(path: string, name: unknown): string {
  return checked(name, nameErrors(path, name));
}

export function checkId(path: string, id: unknown): string {
  return checked(id, patternErrors(path, id, uuidPattern, uuidMeaning));
}

export function checkText(path: string, text: unknown): string {
  return checked(text, patternErrors(path, text, '.', 'must not be empty'));
}

/** Of a person, in whatever script. */
export function checkPerson(path: string, name: unknown): string {
  const message = 'must have 1 to 200 characters, none of them a control character';
  return checked(name, patternErrors(path, name, String.raw`^\P{Cc}{1,200}$`, message));
}

export function nameErrors(path: string, name: unknown): FieldError[] {
  return patternErrors(path, name, namePattern, nameMeaning);
}

export function labelErrors(path: string, label: unknown): FieldError[] {
  return patternErrors(path, label, labelPattern, labelMeaning);
}

export function checkWhole(path: string, value: unknown, min: number, max: number): void {
  const errors = wholeErrors(path, value, min, max);
  if (errors.length > 0) throw invalidRequest(errors);
}

export function wholeErrors(path: string, value: unknown, min: number, max: number): FieldError[] {
  const message = wholeFault(value, min, max);
  return message === null ? [] : [{ path, message }];
}

function wholeFault(value: unknown, min: number, max: number): string | null {
  if (!Number.isInteger(value)) return 'must be a whole number';
  if (Number(value) < min) return `must be >= ${min}`;
  return Number(value) > max ? `must be <= ${max}` : null;
}

function patternErrors(
  path: string,
  value: unknown,
  pattern: string,
  message: string,
): FieldError[] {
  if (typeof value !== 'string') return [{ path, message: 'must be a string' }];
  return new RegExp(pattern, 'u').test(value) ? [] : [{ path, message }];
}

function checked(value: unknown, errors: readonly FieldError[]): string {
  if (errors.length > 0) throw invalidRequest(errors);
  return value as string;
}
