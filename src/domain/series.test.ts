import { expect, it } from 'vitest';
import { counterLength, counterPositions, runPosition, waitPosition } from './counters.js';
import { metricOf, seriesFaults, seriesMetrics, seriesSpan } from './series.js';

const nowMs = Date.parse('2026-01-31T12:34:56.789Z');
const day = 24 * 3_600_000;

it('is the last hour by minutes unless told otherwise', () => {
  const { fromMs, toMs, stepSeconds } = seriesSpan({}, nowMs);
  expect(stepSeconds).toBe(60);
  expect(new Date(fromMs).toISOString()).toBe('2026-01-31T11:34:00.000Z');
  expect(new Date(toMs).toISOString()).toBe('2026-01-31T12:35:00.000Z');
});

it.each([
  [day, 300],
  [7 * day, 3_600],
  [90 * day, 21_600],
  [3_000 * day, 86_400],
])('takes steps that fit %i ms', (lengthMs, step) => {
  expect(seriesSpan({ from: new Date(nowMs - lengthMs) }, nowMs).stepSeconds).toBe(step);
});

it('refuses more points than an answer has, and a span that ends before it begins', () => {
  const week = seriesSpan({ from: new Date(nowMs - 7 * day), stepSeconds: 60 }, nowMs);
  expect(seriesFaults(week)).toMatchObject([{ path: '/step' }]);
  expect(seriesFaults({ ...week, stepSeconds: 360 })).toEqual([]);
  const backwards = seriesSpan({ from: new Date(nowMs + day) }, nowMs);
  expect(seriesFaults(backwards)).toMatchObject([{ path: '/from' }]);
});

it('finds every metric in what was counted', () => {
  const counts = new Float64Array(counterLength);
  for (const position of Object.values(counterPositions)) counts[position] = 7;
  counts[waitPosition('high', 50)] = 1;
  counts[waitPosition('medium', 2_000)] = 1;
  counts[waitPosition('low', 2_000_000)] = 1;
  counts[runPosition(50)] = 1;
  for (const metric of seriesMetrics) expect(metricOf(counts, metric), metric).toBeGreaterThan(0);
  expect(metricOf(counts, 'wait_high_p99')).toBeLessThan(0.1);
  expect(metricOf(counts, 'wait_low_p50')).toBeGreaterThan(1_500);
  expect(metricOf(counts, 'wait_p50')).toBeGreaterThan(1);
  expect(metricOf([], 'run_p95')).toBeNull();
});
