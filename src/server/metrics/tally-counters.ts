import { Counter, type Registry } from 'prom-client';
import type { Tallies } from '../../engine/tallies.js';
import type { Throttling } from '../../engine/throttling.js';

type Counts = () => Readonly<Record<string, number>>;

/** What is counted where it happens, and read when it is scraped. */
export function countTallies(
  registry: Registry,
  { workerFailures, heartbeatFailures, staleWrites }: Tallies,
  refused: Counts,
): void {
  const counter = (name: string, help: string, label: string, counts: Counts) =>
    new Counter({
      name: `sluice_${name}`,
      help,
      labelNames: [label],
      registers: [registry],
      collect() {
        this.reset();
        for (const [value, count] of Object.entries(counts())) this.inc({ [label]: value }, count);
      },
    });
  counter('admission_rejected_total', 'Submits that were refused', 'reason', refused);
  counter('worker_failures_total', 'Workers that fell silent or were suspended', 'reason', () =>
    workerFailures.counts(),
  );
  counter(
    'worker_heartbeat_failures_total',
    'Heartbeats that this server did not acknowledge',
    'reason',
    () => heartbeatFailures.counts(),
  );
  counter('stale_writes_total', 'Writes that were refused by their lease', 'operation', () =>
    staleWrites.counts(),
  );
}

export function countThrottling(registry: Registry, throttling: Throttling): Counter {
  return new Counter({
    name: 'sluice_throttled_seconds_total',
    help: 'Time in which work was ready and its queue was held back',
    labelNames: ['queue', 'reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { queue, reason, seconds } of throttling) this.inc({ queue, reason }, seconds);
    },
  });
}
