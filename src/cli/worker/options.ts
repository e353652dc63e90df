import { totalmem } from 'node:os';
import { defined } from '../../protocol/defined.js';
import type { LogFormat, TransitionMode } from '../../runtime/log-format.js';
import type { WorkerOptions } from '../../worker/worker.js';
import type { MetricsAddress } from './metrics-port.js';

/** Of `sluice worker`, as they come from the command line. */
export interface WorkerCommandOptions {
  readonly url: string;
  readonly apiKey?: string;
  readonly module: string;
  readonly concurrency?: number;
  readonly claimBatch?: number;
  readonly latencyThreshold?: number;
  readonly queues?: readonly string[];
  readonly capabilities?: readonly string[];
  readonly name?: string;
  readonly codeVersion?: string;
  readonly processes?: number;
  /** In seconds, like all times here. */
  readonly drainTimeout: number;
  readonly maxIdle?: number;
  readonly maxLifetime?: number;
  /** In megabytes. */
  readonly memoryLimit?: number;
  readonly metricsPort?: number;
  readonly metricsHost: string;
  /** Absent: without OpenTelemetry. */
  readonly otel?: 'link' | 'parent';
  readonly logLevel: string;
  readonly logFormat?: LogFormat;
  readonly logTransitions?: TransitionMode;
  /** Only in a process that a parent started: which of `processes` it is, from 1. */
  readonly child?: number;
}

export function processName({ name = 'worker' }: WorkerCommandOptions, number: number): string {
  return `${name}-${number}`;
}

export function metricsAddress(options: WorkerCommandOptions): MetricsAddress | null {
  const { metricsHost: host, metricsPort: port } = options;
  return port === undefined ? null : { host, port };
}

export function toWorkerOptions(options: WorkerCommandOptions): WorkerOptions {
  const { child, maxIdle, latencyThreshold } = options;
  // A process of several looks at its age itself: it has to say that another is to take its place.
  const maxLifetimeMs = child === undefined ? lifetimeMs(options) : null;
  return defined({
    concurrency: options.concurrency,
    claimBatch: options.claimBatch,
    latencyThresholdMs: inMs(latencyThreshold),
    queues: options.queues,
    capabilities: options.capabilities,
    name: child === undefined ? options.name : processName(options, child),
    version: options.codeVersion,
    drainTimeoutMs: options.drainTimeout * 1000,
    maxIdleMs: inMs(maxIdle),
    maxLifetimeMs: maxLifetimeMs ?? undefined,
    memoryLimitBytes: memoryBytes(options) ?? undefined,
    logTransitions: options.logTransitions,
  });
}

function inMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

/** Processes of the same age would all retire at once: they are spread over a tenth of it. */
export function lifetimeMs({
  maxLifetime,
  child = 1,
  processes = 1,
}: Pick<WorkerCommandOptions, 'maxLifetime' | 'child' | 'processes'>): number | null {
  if (maxLifetime === undefined) return null;
  return Math.round(maxLifetime * 1000 * (1 - (0.1 * (child - 1)) / processes));
}

/** What all processes may use together, in equal shares; alone, the worker finds the limit itself. */
export function memoryBytes({
  memoryLimit,
  child,
  processes = 1,
}: Pick<WorkerCommandOptions, 'memoryLimit' | 'child' | 'processes'>): number | null {
  if (memoryLimit !== undefined) return (memoryLimit * 1024 * 1024) / processes;
  if (child === undefined) return null;
  const constrained = process.constrainedMemory();
  const limit = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return limit / processes;
}
