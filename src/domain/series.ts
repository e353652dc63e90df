import {
  counterNames,
  countOf,
  runQuantile,
  waitQuantile,
  type CounterName,
  type Counts,
} from './counters.js';
import type { FieldError } from './errors.js';
import { priorities } from './priority.js';

const shares = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;

/** In seconds; over all priorities, and of each. */
const quantileNames = ['wait', 'run', ...priorities.map((each) => `wait_${each}` as const)].flatMap(
  (name) => Object.keys(shares).map((share) => `${name}_${share}`),
);

/** What can be asked for over time. */
export const seriesMetrics: readonly string[] = [...counterNames, ...quantileNames];

export const defaultSeriesMetrics: readonly CounterName[] = [
  'submitted',
  'started',
  'completed',
  'failed',
];

/** Of one piece of time. Null: there is no quantile, since nothing was counted. */
export function metricOf(counts: Counts, metric: string): number | null {
  if (isCounter(metric)) return countOf(counts, metric);
  const [what, priority, last] = metric.split('_');
  const share = shares[(last ?? priority) as keyof typeof shares];
  if (what === 'run') return runQuantile(counts, share);
  const of = priorities.find((each) => each === priority);
  return waitQuantile(counts, share, of);
}

function isCounter(metric: string): metric is CounterName {
  return (counterNames as readonly string[]).includes(metric);
}

export interface SeriesSpan {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepSeconds: number;
}

export interface SeriesTimes {
  readonly from?: Date;
  readonly to?: Date;
  readonly stepSeconds?: number;
}

const hourMs = 3_600_000;
/** Offered by itself: the shortest of these that needs no more than so many points. */
const ownSteps = [60, 300, 900, 3_600, 21_600, 86_400];
const ownPoints = 400;
export const maxSeriesPoints = 2_000;

/** Whole steps that hold all that is asked for; the last hour, unless told otherwise. */
export function seriesSpan({ from, to, stepSeconds }: SeriesTimes, nowMs: number): SeriesSpan {
  const endMs = to?.getTime() ?? nowMs;
  const beginMs = from?.getTime() ?? endMs - hourMs;
  const seconds = (endMs - beginMs) / 1000;
  const step =
    stepSeconds ?? ownSteps.find((each) => seconds / each <= ownPoints) ?? ownSteps.at(-1) ?? 60;
  const stepMs = step * 1000;
  return {
    fromMs: Math.floor(beginMs / stepMs) * stepMs,
    toMs: Math.ceil(endMs / stepMs) * stepMs,
    stepSeconds: step,
  };
}

export function seriesFaults({ fromMs, toMs, stepSeconds }: SeriesSpan): FieldError[] {
  if (fromMs >= toMs) return [{ path: '/from', message: 'must be before `to`' }];
  const points = (toMs - fromMs) / 1000 / stepSeconds;
  if (points <= maxSeriesPoints) return [];
  const least = Math.ceil((toMs - fromMs) / 1000 / maxSeriesPoints / 60) * 60;
  const message = `gives ${points} points, and an answer has at most ${maxSeriesPoints}: use ${least} or more`;
  return [{ path: '/step', message }];
}
