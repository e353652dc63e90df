import type { Lab } from './lab.js';
import { spreadOf } from './measure.js';

/** `noted`: nothing was wanted of it, and it is worth knowing. */
export type Verdict = 'ok' | 'missed' | 'noted';

/** A list: every round. */
type Numbers = Readonly<Record<string, number | readonly number[]>>;

export interface Row {
  readonly what: string;
  readonly wanted: string;
  readonly measured: string;
  readonly verdict: Verdict;
  readonly numbers: Numbers;
}

export interface Scenario {
  readonly name: string;
  /** One sentence for the reader of the table. */
  readonly about: string;
  readonly run: (lab: Lab) => Promise<readonly Row[]>;
}

export interface Measured {
  readonly what: string;
  readonly measured: string;
  readonly numbers: Numbers;
}

export function judged(row: Measured, wanted: string, isMet: boolean): Row {
  return { ...row, wanted, verdict: isMet ? 'ok' : 'missed' };
}

export function noted(row: Measured): Row {
  return { ...row, wanted: '', verdict: 'noted' };
}

export const percent = (share: number, digits = 1): string => `${(share * 100).toFixed(digits)} %`;
export const ms = (duration: number): string =>
  `${duration < 10 ? duration.toFixed(1) : Math.round(duration)} ms`;
export const seconds = (durationMs: number, digits = 1): string =>
  `${(durationMs / 1000).toFixed(digits)} s`;
export const count = (value: number): string => Math.round(value).toLocaleString('en');

/** The median, and from where to where the rounds went. */
export function withSpread(values: readonly number[], text: (value: number) => string): string {
  const { median, least, most } = spreadOf(values);
  return `${text(median)} (${text(least)} to ${text(most)})`;
}
