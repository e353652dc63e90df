import type * as prometheus from 'prom-client';
import type { Registry } from 'prom-client';
import { otherNames } from '../domain/other-names.js';
import type { TaskHandler } from './handler.js';
import type { WorkerObserver } from './observer.js';

type Prometheus = typeof prometheus;

export type MetricsSnapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** What of a worker is read when somebody looks. */
interface Watched {
  readonly inFlight: number;
  readonly capacity: number;
}

export interface WorkerMetrics {
  /** A registry of prom-client. It holds nothing but this. */
  readonly registry: Registry;
  /** For the `observer` of a worker's options. */
  readonly observer: WorkerObserver;
  /** From now on the worker's load is shown. Several workers of one process add up. */
  readonly watch: (worker: Watched) => void;
}

const durationBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600];
const claimSizeBuckets = [1, 2, 5, 10, 15, 25, 35, 50, 100, 200];

/** Prometheus metrics of the workers of this process. prom-client is loaded here, not before. */
export async function createWorkerMetrics(
  handlers: readonly Pick<TaskHandler, 'type'>[],
): Promise<WorkerMetrics> {
  const loaded: Prometheus = await import('prom-client');
  const registry = new loaded.Registry();
  const watched: Watched[] = [];
  showLoad(loaded, registry, watched);
  const claimed = countClaims(loaded, registry);
  const ended = countAttempts(loaded, registry, new Set(handlers.map(({ type }) => type)));
  const heartbeatFailed = countFailedHeartbeats(loaded, registry);
  const observer = { claimed, ended, heartbeatFailed };
  return { registry, observer, watch: (worker) => watched.push(worker) };
}

function showLoad({ Gauge }: Prometheus, registry: Registry, watched: readonly Watched[]): void {
  const gauge = (name: string, help: string, read: (worker: Watched) => number) =>
    new Gauge({
      name: `sluice_worker_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(watched.reduce((sum, worker) => sum + read(worker), 0));
      },
    });
  gauge('in_flight_tasks', 'Tasks that run here', ({ inFlight }) => inFlight);
  gauge('capacity_tasks', 'Tasks that can run here at once', ({ capacity }) => capacity);
}

function countFailedHeartbeats({ Counter }: Prometheus, registry: Registry): () => void {
  const failed = new Counter({
    name: 'sluice_worker_heartbeat_failures_total',
    help: 'Heartbeats that the server did not acknowledge',
    registers: [registry],
  });
  return () => failed.inc();
}

function countClaims(
  { Counter, Histogram }: Prometheus,
  registry: Registry,
): WorkerObserver['claimed'] {
  const registers = [registry];
  const claims = new Counter({
    name: 'sluice_worker_claims_total',
    help: 'Polls that asked for tasks and were answered',
    labelNames: ['result'],
    registers,
  });
  const sizes = { buckets: claimSizeBuckets, registers };
  const asking = new Histogram({
    ...sizes,
    name: 'sluice_worker_claim_request_size',
    help: 'How many tasks a poll asked for',
  });
  const claiming = new Histogram({
    ...sizes,
    name: 'sluice_worker_claim_size',
    help: 'How many tasks a poll claimed, if any',
  });
  return (asked, received) => {
    // A poll for nothing but news.
    if (asked === 0) return;
    claims.inc({ result: received === 0 ? 'empty' : 'tasks' });
    asking.observe(asked);
    if (received > 0) claiming.observe(received);
  };
}

function countAttempts(
  { Counter, Histogram }: Prometheus,
  registry: Registry,
  types: ReadonlySet<string>,
): WorkerObserver['ended'] {
  const shared = { labelNames: ['task_type', 'status'], registers: [registry] };
  const completed = new Counter({
    ...shared,
    name: 'sluice_worker_tasks_completed_total',
    help: 'Attempts that ended here',
  });
  const duration = new Histogram({
    ...shared,
    name: 'sluice_worker_task_duration_seconds',
    help: 'How long attempts ran here',
    buckets: durationBuckets,
  });
  return (taskType, status, seconds) => {
    // Labels are bounded: a type that this worker has no handler for is not told by its name.
    const labels = { task_type: types.has(taskType) ? taskType : otherNames, status };
    completed.inc(labels);
    duration.observe(labels, seconds);
  };
}
