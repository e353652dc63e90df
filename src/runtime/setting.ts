import {
  parseSubmissionLimits,
  submissionLimitsForm,
  type SubmissionLimit,
} from '../domain/submission-limit.js';
import { parseRedisUrl, redisUrlExamples } from './redis-url.js';

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
  const isUrl =
    typeof given === 'string' && /^postgres(ql)?:\/\//.test(given) && URL.canParse(given);
  return isUrl
    ? { kind: 'value', value: given }
    : { kind: 'problem', mustBe: 'like postgres://user:password@host:5432/database' };
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
