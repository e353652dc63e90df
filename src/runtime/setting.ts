import type { Threshold } from '../domain/admission.js';
import { isIP } from 'node:net';
import {
  parseSubmissionLimits,
  submissionLimitsForm,
  type SubmissionLimit,
} from '../domain/submission-limit.js';
import { parsePostgresUrl, postgresUrlForm } from './postgres-url.js';
import { parseRedisUrl, redisUrlExamples } from './redis-url.js';

export const maxActiveTasks = 1_000_000_000;

export type Parsed<Value> =
  | { readonly kind: 'value'; readonly value: Value }
  | { readonly kind: 'problem'; readonly mustBe: string };

export type Parse<Value> = (given: unknown) => Parsed<Value>;

export interface Setting<Value> {
  readonly flag: string | null;
  /** The first that is set counts. */
  readonly variables: readonly string[];
  readonly parse: Parse<Value>;
  /** Of the flag, which may have another unit. */
  readonly parseFlag: Parse<Value>;
  readonly fallback: Value;
  readonly meaning: string;
}

export function setting<Value>(
  flag: string | null,
  variables: readonly string[],
  parse: Parse<Value>,
  fallback: Value,
  meaning: string,
  parseFlag: Parse<Value> = parse,
): Setting<Value> {
  return { flag, variables, parse, parseFlag, fallback, meaning };
}

export function text(given: unknown): Parsed<string> {
  return typeof given === 'string' && given !== ''
    ? { kind: 'value', value: given }
    : { kind: 'problem', mustBe: 'a text' };
}

export function whole(min: number, max: number): Parse<number> {
  return (given) => {
    const value = typeof given === 'string' && /^\d+$/.test(given) ? Number(given) : given;
    return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
      ? { kind: 'value', value }
      : { kind: 'problem', mustBe: `a whole number from ${min} to ${max}` };
  };
}

/** Seconds on the command line, with a fraction if need be; in milliseconds. */
export function secondsAsMs(minMs: number, maxMs: number): Parse<number> {
  return (given) => {
    const isNumber = typeof given === 'string' && /^\d+(\.\d+)?$/.test(given);
    const value = Math.round(Number(given) * 1000);
    return isNumber && value >= minMs && value <= maxMs
      ? { kind: 'value', value }
      : { kind: 'problem', mustBe: `a number of seconds from ${minMs / 1000} to ${maxMs / 1000}` };
  };
}

/** Tasks, or a share of all that may be active. */
export function threshold(given: unknown): Parsed<Threshold> {
  if (typeof given === 'string' && /^\d{1,3}(\.\d+)?%$/.test(given)) {
    return { kind: 'value', value: given as `${number}%` };
  }
  const tasks = whole(1, maxActiveTasks)(given);
  return tasks.kind === 'value'
    ? tasks
    : { kind: 'problem', mustBe: `a share such as 80%, or ${tasks.mustBe}` };
}

export function yesOrNo(given: unknown): Parsed<boolean> {
  if (given === true || given === 'true' || given === '1') return { kind: 'value', value: true };
  if (given === false || given === 'false' || given === '0') return { kind: 'value', value: false };
  return { kind: 'problem', mustBe: 'true or false' };
}

export function oneOf<Allowed extends string>(allowed: readonly Allowed[]): Parse<Allowed> {
  return (given) => {
    const value = allowed.find((one) => one === given);
    return value !== undefined
      ? { kind: 'value', value }
      : { kind: 'problem', mustBe: `one of ${allowed.join(', ')}` };
  };
}

export function postgresUrl(given: unknown): Parsed<string> {
  return typeof given === 'string' && parsePostgresUrl(given) !== null
    ? { kind: 'value', value: given }
    : { kind: 'problem', mustBe: postgresUrlForm };
}

export function redisUrl(given: unknown): Parsed<string> {
  return typeof given === 'string' && parseRedisUrl(given) !== null
    ? { kind: 'value', value: given }
    : { kind: 'problem', mustBe: `like ${redisUrlExamples}` };
}

export function submissionLimits(given: unknown): Parsed<readonly SubmissionLimit[]> {
  const value = typeof given === 'string' ? parseSubmissionLimits(given) : null;
  return value === null
    ? { kind: 'problem', mustBe: submissionLimitsForm }
    : { kind: 'value', value };
}

/** Separated by commas; in a file also as a list. */
export function names(given: unknown): Parsed<readonly string[]> {
  const listed: unknown = typeof given === 'string' ? given.split(',') : given;
  const isList = Array.isArray(listed) && listed.length > 0;
  if (!isList || !listed.every((name) => typeof name === 'string' && name.trim() !== '')) {
    return { kind: 'problem', mustBe: 'names, separated by commas' };
  }
  return { kind: 'value', value: listed.map((name: string) => name.trim()) };
}

export function webAddress(given: unknown): Parsed<string> {
  const isUrl = typeof given === 'string' && /^https?:\/\//.test(given) && URL.canParse(given);
  return isUrl
    ? { kind: 'value', value: given }
    : { kind: 'problem', mustBe: 'like https://host/path' };
}

export function optional<Value>(parse: Parse<Value>): Parse<Value | null> {
  return parse;
}

/** Separated by commas, or an array in a file; what is empty names none. */
function list(isOne: (text: string) => boolean, mustBe: string): Parse<readonly string[]> {
  return (given) => {
    const items = typeof given === 'string' ? given.split(',') : given;
    if (Array.isArray(items) && items.every((item) => typeof item === 'string')) {
      const value = items.map((item) => item.trim()).filter((item) => item !== '');
      if (value.every(isOne)) return { kind: 'value', value };
    }
    return { kind: 'problem', mustBe };
  };
}

/** As a browser sends it: without a path, and without a slash at its end. */
export const origins = list(
  (text) => URL.canParse(text) && new URL(text).origin === text,
  'origins like https://app.example.com, separated by commas',
);

export const networks = list((text) => {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d+$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}, 'addresses or networks like 10.0.0.0/8, separated by commas');
