import type { WorkerMetrics } from '../../worker/metrics.js';
import type { Worker } from '../../worker/worker.js';
import { loadTaskDefinitions } from '../load-module.js';
import { remoteApi } from '../remote.js';
import { toWorkerOptions, type WorkerCommandOptions } from './options.js';

export interface OpenedWorker {
  readonly worker: Worker;
  readonly taskTypes: readonly string[];
  /** Null when nobody asked for them. */
  readonly metrics: WorkerMetrics | null;
}

const patienceMs = 2_000;

/** The worker that the command line describes; it does not run yet. */
export async function openWorker(options: WorkerCommandOptions): Promise<OpenedWorker> {
  const { module, metricsPort, logLevel, logFormat } = options;
  const definitions = await loadTaskDefinitions(module);
  const [{ Worker }, { createLog, logDestination }, api, metrics] = await Promise.all([
    import('../../worker/worker.js'),
    import('../../runtime/log.js'),
    remoteApi(options),
    metricsPort === undefined ? null : openMetrics(definitions),
  ]);
  const worker = new Worker(api, definitions, {
    ...toWorkerOptions(options),
    log: createLog(logLevel, logDestination(logFormat)),
    ...(metrics === null ? {} : { observer: metrics.observer }),
  });
  metrics?.watch(worker);
  return { worker, taskTypes: definitions.map(({ type }) => type), metrics };
}

/** With those of the process, by the names that everybody knows: memory, event loop, CPU. */
async function openMetrics(definitions: readonly { type: string }[]): Promise<WorkerMetrics> {
  const [{ createWorkerMetrics }, { collectDefaultMetrics }] = await Promise.all([
    import('../../worker/metrics.js'),
    import('prom-client'),
  ]);
  const metrics = await createWorkerMetrics(definitions);
  collectDefaultMetrics({ register: metrics.registry });
  return metrics;
}

/** Starts it, however long the server is away; tells when it has been for a while. */
export async function startPatiently(worker: Worker, onWaiting: () => void): Promise<void> {
  const waiting = setTimeout(onWaiting, patienceMs);
  try {
    await worker.start();
  } finally {
    clearTimeout(waiting);
  }
}
