import type { Attributes, Meter } from '@opentelemetry/api';

/** Seconds, as the conventions for messaging advise. */
const callBuckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Handlers wait for models: the last of them is an hour. */
const processBuckets = [...callBuckets, 30, 60, 300, 900, 3_600];

/** The metrics of the conventions for messaging. */
export class Measurements {
  readonly #called;
  readonly #sent;
  readonly #consumed;
  readonly #processed;

  constructor(meter: Meter) {
    this.#called = meter.createHistogram('messaging.client.operation.duration', {
      unit: 's',
      description: 'How long a call took that submitted tasks or reported a result',
      advice: { explicitBucketBoundaries: callBuckets },
    });
    this.#sent = meter.createCounter('messaging.client.sent.messages', {
      unit: '{message}',
      description: 'Tasks that were submitted',
    });
    this.#consumed = meter.createCounter('messaging.client.consumed.messages', {
      unit: '{message}',
      description: 'Tasks that a worker took',
    });
    this.#processed = meter.createHistogram('messaging.process.duration', {
      unit: 's',
      description: 'How long attempts ran',
      advice: { explicitBucketBoundaries: processBuckets },
    });
  }

  called(seconds: number, attributes: Attributes): void {
    this.#called.record(seconds, attributes);
  }

  sent(tasks: number, attributes: Attributes): void {
    this.#sent.add(tasks, attributes);
  }

  consumed(attributes: Attributes): void {
    this.#consumed.add(1, attributes);
  }

  processed(seconds: number, attributes: Attributes): void {
    this.#processed.record(seconds, attributes);
  }
}

/** Answers how many seconds have passed since. */
export function stopwatch(): () => number {
  const startedAtMs = performance.now();
  return () => (performance.now() - startedAtMs) / 1000;
}
