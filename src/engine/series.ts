import {
  defaultSeriesMetrics,
  metricOf,
  seriesFaults,
  seriesMetrics,
  seriesSpan,
} from '../domain/series.js';
import { invalidRequest } from '../protocol/problem-wire.js';
import type { Series, SeriesRequest } from '../protocol/series-api.js';
import { allQueuesName } from '../store/counters.js';
import { approximateNow, type EngineContext } from './context.js';
import type { Counters } from './counters.js';

/** Numbers over time, from the counts of all servers, with what this one has not written yet. */
export async function getSeries(
  context: EngineContext,
  counters: Counters,
  request: SeriesRequest,
): Promise<Series> {
  const metrics = request.metrics ?? defaultSeriesMetrics;
  const unknown = metrics.find((metric) => !seriesMetrics.includes(metric));
  if (unknown !== undefined) {
    const message = `"${unknown}" is not a metric; there are: ${seriesMetrics.join(', ')}`;
    throw invalidRequest([{ path: '/metric', message }]);
  }
  const span = seriesSpan(request, approximateNow(context).getTime());
  const faults = seriesFaults(span);
  if (faults.length > 0) throw invalidRequest(faults);
  const { fromMs, toMs, stepSeconds } = span;
  const counted = await counters.findCounts(request.queue ?? allQueuesName, span);
  const countsAt = new Map(counted.map(({ atMs, counts }) => [atMs, counts]));
  const pieces = Array.from(
    { length: (toMs - fromMs) / stepSeconds / 1000 },
    (_, index) => fromMs + index * stepSeconds * 1000,
  );
  return {
    queue: request.queue ?? null,
    from: new Date(fromMs),
    to: new Date(toMs),
    stepSeconds,
    times: pieces.map((atMs) => new Date(atMs)),
    values: Object.fromEntries(
      metrics.map((metric) => [
        metric,
        pieces.map((atMs) => metricOf(countsAt.get(atMs) ?? [], metric)),
      ]),
    ),
  };
}
