import { timestampFromWire, timestampToWire } from './common-wire.js';
import { timestampFieldToWire, writeRequest, type FieldsOf } from './fields.js';
import type { Series, SeriesRequest } from './series-api.js';
import type { SeriesQueryWire, SeriesWire } from './series-schema.js';

export function seriesRequestFromWire(wire: SeriesQueryWire): SeriesRequest {
  const { metric, queue, from, to, step } = wire;
  return {
    ...(metric === undefined ? {} : { metrics: metric.split(',') }),
    ...(queue === undefined ? {} : { queue }),
    ...(from === undefined ? {} : { from: timestampFromWire(from) }),
    ...(to === undefined ? {} : { to: timestampFromWire(to) }),
    ...(step === undefined ? {} : { stepSeconds: step }),
  };
}

export const seriesFields = {
  metrics: { wire: 'metric', write: metricsToWire },
  queue: 'queue',
  from: { wire: 'from', write: timestampFieldToWire },
  to: { wire: 'to', write: timestampFieldToWire },
  stepSeconds: 'step',
} as const satisfies FieldsOf<SeriesRequest>;

function metricsToWire(metrics: unknown): unknown {
  return Array.isArray(metrics) ? metrics.join(',') : metrics;
}

export function seriesRequestToWire(request: SeriesRequest): SeriesQueryWire {
  return writeRequest(seriesFields, request) as SeriesQueryWire;
}

export function seriesToWire({ queue, from, to, stepSeconds, times, values }: Series): SeriesWire {
  return {
    queue,
    from: timestampToWire(from),
    to: timestampToWire(to),
    step_seconds: stepSeconds,
    times: times.map(timestampToWire),
    values: Object.fromEntries(
      Object.entries(values).map(([metric, numbers]) => [metric, [...numbers]]),
    ),
  };
}

export function seriesFromWire({ step_seconds: stepSeconds, ...series }: SeriesWire): Series {
  return {
    ...series,
    from: timestampFromWire(series.from),
    to: timestampFromWire(series.to),
    stepSeconds,
    times: series.times.map(timestampFromWire),
  };
}
