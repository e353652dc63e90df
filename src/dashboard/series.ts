import type { SeriesWire } from '../protocol/series-schema.js';
import { ranges, type Range } from './components/range.js';
import { get, query } from './http.js';
import { usePolled, type Polled } from './polled.js';

export interface Course {
  /** Unix seconds. */
  readonly times: readonly number[];
  readonly stepSeconds: number;
  /** What was counted, for each minute. */
  rate(metric: string): (number | null)[];
  /** As the server said it: quantiles. */
  raw(metric: string): readonly (number | null)[];
  /** Of a sampled time: its share of each piece; of `depth_ms`, the average number in line. */
  mean(metric: string): number[];
  /** Of a counter, over the whole span. */
  sum(metric: string): number;
}

const everyMs = { hour: 10_000, day: 60_000, week: 300_000 };

/** Numbers over time, of one queue or of all of them. */
export function useSeries(
  metrics: readonly string[],
  range: Range,
  queue: string | null = null,
): Polled<Course> {
  const path = `${range} ${query('series', { metric: metrics.join(','), queue })}`;
  return usePolled(path, { everyMs: everyMs[range] }, askSeries);
}

async function askSeries(path: string, signal: AbortSignal): Promise<Course> {
  const [range, question] = path.split(' ') as [Range, string];
  const from = new Date(Date.now() - ranges[range] * 1000).toISOString();
  const wire = await get<SeriesWire>(`${question}&from=${encodeURIComponent(from)}`, signal);
  return toCourse(wire, Date.now());
}

/** Without the piece of time that is not over: it would look like a fall. */
export function toCourse(wire: SeriesWire, nowMs: number): Course {
  const stepSeconds = wire.step_seconds;
  const all = wire.times.map((at) => Date.parse(at) / 1000);
  const whole = all.filter((at) => (at + stepSeconds) * 1000 <= nowMs).length;
  const raw = (metric: string) => (wire.values[metric] ?? []).slice(0, whole);
  return {
    times: all.slice(0, whole),
    stepSeconds,
    raw,
    rate: (metric) =>
      raw(metric).map((value) => (value === null ? null : (value * 60) / stepSeconds)),
    mean: (metric) => raw(metric).map((value) => (value ?? 0) / (stepSeconds * 1000)),
    sum: (metric) =>
      (wire.values[metric] ?? []).reduce<number>((sum, value) => sum + (value ?? 0), 0),
  };
}
