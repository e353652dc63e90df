import { printLine, printNote } from '../output.js';
import { leaveSoon, untilShutdown } from '../shutdown.js';
import { openMetricsPort, type MetricsPort } from './metrics-port.js';
import { drainNote, waitingNote } from './notes.js';
import { openWorker, startPatiently, type OpenedWorker } from './open-worker.js';
import { metricsAddress, type WorkerCommandOptions } from './options.js';

/** The worker in this process. */
export async function runAlone(options: WorkerCommandOptions): Promise<void> {
  let port: MetricsPort | null = null;
  try {
    const opened = await openWorker(options);
    port = await openPort(options, opened);
    await work(opened, options, port);
  } finally {
    port?.close();
    leaveSoon();
  }
}

async function work(
  { worker, taskTypes }: OpenedWorker,
  { url, drainTimeout }: WorkerCommandOptions,
  port: MetricsPort | null,
): Promise<void> {
  const stop = () => {
    if (worker.inFlight > 0) printNote(drainNote(drainTimeout));
    return worker.stop();
  };
  const shutdown = untilShutdown(stop, worker.stopped);
  const started = startPatiently(worker, () => void waitingNote(url).then(printNote));
  await Promise.race([started, shutdown]);
  if (worker.id !== null) {
    printLine(`Worker ${worker.id} is ready for ${taskTypes.join(', ')} at ${url}`);
    if (port !== null) printLine(`Metrics at ${port.url}`);
  }
  await shutdown;
}

async function openPort(
  options: WorkerCommandOptions,
  { worker, metrics }: OpenedWorker,
): Promise<MetricsPort | null> {
  const address = metricsAddress(options);
  if (address === null || metrics === null) return null;
  return openMetricsPort(address, {
    text: () => metrics.registry.metrics(),
    health: async () => worker.health,
  });
}
