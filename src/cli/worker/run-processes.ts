import { printLine, printNote } from '../output.js';
import { leaveSoon, untilShutdown } from '../shutdown.js';
import { openMetricsPort, type MetricsPort } from './metrics-port.js';
import { drainNote, waitingNote } from './notes.js';
import { metricsAddress, processName, type WorkerCommandOptions } from './options.js';
import type { ProcessMetrics } from './process-metrics.js';
import { Processes } from './processes.js';
import type { ReadyMessage } from './worker-process.js';

/** The worker in several processes, which this one looks after. */
export async function runProcesses(options: WorkerCommandOptions, count: number): Promise<void> {
  const { url, drainTimeout } = options;
  const metrics = await loadMetrics(options);
  const processes = new Processes({
    count,
    nameOf: (number) => processName(options, number),
    argsOf: childArgs,
    drainTimeoutMs: drainTimeout * 1000,
    onWaiting: () => void waitingNote(url).then(printNote),
    onReady: (message) => {
      printLine(describeReady(message, count, url));
      if (port !== null) printLine(`Metrics at ${port.url}`);
    },
    onGone: (snapshot) => metrics?.merged.depart(snapshot),
  });
  const port = await openPort(options, metrics, processes);
  try {
    await lookAfter(processes, drainTimeout);
  } finally {
    processes.killAll();
    port?.close();
    leaveSoon();
  }
  if (processes.drainFailed) process.exitCode = 1;
}

function lookAfter(processes: Processes, drainTimeout: number): Promise<void> {
  const stop = () => {
    if (processes.ready > 0) printNote(drainNote(drainTimeout));
    return processes.stop();
  };
  return untilShutdown(stop, processes.run(), () => processes.killAll());
}

/** The same command again, with its number in it. */
function childArgs(number: number): string[] {
  const [, , command = '', ...options] = process.argv;
  return [command, '--child', String(number), ...options];
}

function describeReady({ taskTypes, capacity }: ReadyMessage, count: number, url: string): string {
  const processes = count === 1 ? '1 process' : `${count} processes`;
  const tasks = capacity === 1 ? '1 task' : `${capacity} tasks`;
  return `Worker is ready with ${processes} × ${tasks} for ${taskTypes.join(', ')} at ${url}`;
}

async function loadMetrics(options: WorkerCommandOptions): Promise<ProcessMetrics | null> {
  if (metricsAddress(options) === null) return null;
  const { ProcessMetrics } = await import('./process-metrics.js');
  return new ProcessMetrics();
}

async function openPort(
  options: WorkerCommandOptions,
  metrics: ProcessMetrics | null,
  processes: Processes,
): Promise<MetricsPort | null> {
  const address = metricsAddress(options);
  if (address === null || metrics === null) return null;
  return openMetricsPort(address, {
    text: metrics.textOf(processes),
    health: () => processes.readHealth(),
  });
}
