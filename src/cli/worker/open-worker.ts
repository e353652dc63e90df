import type { Tracing } from '../../client/tracing.js';
import type { WorkerMetrics } from '../../worker/metrics.js';
import type { Worker } from '../../worker/worker.js';
import { CliError } from '../failure.js';
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
  const { module, metricsPort, logLevel, logFormat, otel } = options;
  const definitions = await loadTaskDefinitions(module);
  const [{ Worker }, { createLog, logDestination }, api, metrics, tracing] = await Promise.all([
    import('../../worker/worker.js'),
    import('../../runtime/log.js'),
    remoteApi(options),
    metricsPort === undefined ? null : openMetrics(definitions),
    otel === undefined ? null : openTracing(otel),
  ]);
  const worker = new Worker(api, definitions, {
    ...toWorkerOptions(options),
    log: createLog(logLevel, logDestination(logFormat)),
    ...(metrics === null ? {} : { observer: metrics.observer }),
    ...(tracing === null ? {} : { tracing }),
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

/** Its package is there only where somebody installed it. */
async function openTracing(structure: 'link' | 'parent'): Promise<Tracing> {
  try {
    const { createTracing } = await import('../../otel/index.js');
    return createTracing({ structure });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new CliError('--otel needs the package @opentelemetry/api.', {
      next: 'Install it beside sluice: npm install @opentelemetry/api',
      cause: error,
    });
  }
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
