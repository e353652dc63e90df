// `sluice/otel`: spans and metrics of OpenTelemetry. Needs @opentelemetry/api, and an SDK to make anything of it.
import { metrics, trace, type MeterProvider, type TracerProvider } from '@opentelemetry/api';
import type { SluiceClient } from '../client/sluice-client.js';
import type { Tracing } from '../client/tracing.js';
import { checkOptions } from '../protocol/options.js';
import { tracedAttempts, type Structure } from './attempt-spans.js';
import { Measurements } from './measurements.js';
import { tracedSubmit } from './submit-span.js';

export interface InstrumentOptions {
  /**
   * How the span of an attempt belongs to that of its submit. `link`: a trace of its own, with a link. `parent`: a child
   * in the same trace. Default `link`.
   */
  readonly structure?: Structure;
  /** Absent: the global ones. */
  readonly tracerProvider?: TracerProvider;
  readonly meterProvider?: MeterProvider;
}

const name = 'sluice';

/**
 * Makes spans of what this Sluice submits and of what the workers made with it run, those made before aside. Answers the
 * same Sluice.
 */
export function instrument<Client extends SluiceClient>(
  sluice: Client,
  options: InstrumentOptions = {},
): Client {
  sluice.tracing = createTracing(options);
  return sluice;
}

/** For the `tracing` of a worker's options, where there is no Sluice to instrument. */
export function createTracing(options: InstrumentOptions = {}): Tracing {
  checkOptions<InstrumentOptions>(
    { structure: ['link', 'parent'], tracerProvider: 'object', meterProvider: 'object' },
    options,
  );
  const { structure = 'link', tracerProvider = trace, meterProvider = metrics } = options;
  const tracer = tracerProvider.getTracer(name);
  const measurements = new Measurements(meterProvider.getMeter(name));
  return {
    submit: tracedSubmit(tracer, measurements),
    begin: tracedAttempts(tracer, measurements, structure),
  };
}

export type { Tracing } from '../client/tracing.js';
export type { Structure } from './attempt-spans.js';
export { tokenUsage, type TokenUsageOptions, type TokenUsageProcessor } from './token-usage.js';
