import type { CounterName } from '../domain/counters.js';
import { percent } from './format.js';
import type { Course } from './series.js';

interface Cause {
  readonly label: string;
  readonly color: string;
  readonly metrics: readonly CounterName[];
}

/** Why tasks that were ready could not be taken. */
const causes: readonly Cause[] = [
  { label: 'rate limit', color: '--c1', metrics: ['held_rate_limit_ms'] },
  { label: 'max_concurrency', color: '--c2', metrics: ['held_max_concurrency_ms'] },
  { label: 'no free worker', color: '--c5', metrics: ['no_worker_ms'] },
  { label: 'paused', color: '--c4', metrics: ['held_paused_ms'] },
  { label: 'told to slow down', color: '--c3', metrics: ['held_pushed_back_ms'] },
  {
    label: 'circuit',
    color: '--c6',
    metrics: ['held_circuit_open_ms', 'held_circuit_half_open_ms'],
  },
];

export const lostTimeMetrics: readonly CounterName[] = causes.flatMap(({ metrics }) => metrics);

export interface LostTime {
  readonly label: string;
  readonly color: string;
  /** Of each piece of time. */
  readonly values: readonly number[];
  /** Of the whole of it. */
  readonly share: number;
}

/** Only causes that there were. */
export function lostTimeOf(course: Pick<Course, 'times' | 'mean'>): LostTime[] {
  return causes
    .map(({ label, color, metrics }) => {
      const each = metrics.map((metric) => course.mean(metric));
      const values = course.times.map((_, at) => sum(each.map((one) => one[at] ?? 0)));
      return { label, color, values, share: sum(values) / Math.max(1, values.length) };
    })
    .filter(({ share }) => share > 0);
}

/** Over the last hour tasks were ready and none could be taken for 34 % of the time: rate limit 20 %, paused 14 %. */
export function lostTimeWords(lost: readonly LostTime[], range: string): string {
  if (lost.length === 0)
    return `Whenever tasks were ready over the last ${range}, they could start.`;
  const shares = lost
    .toSorted((a, b) => b.share - a.share)
    .map(({ label, share }) => `${label} ${percent(share)}`);
  const all = percent(sum(lost.map(({ share }) => share)));
  return `Tasks were ready and none could start for ${all} of the last ${range}: ${shares.join(', ')}.`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
