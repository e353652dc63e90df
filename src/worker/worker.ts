import { hostname } from 'node:os';
import { defaultClaimBatch } from '../domain/claim-size.js';
import type { SluiceError } from '../domain/errors.js';
import type { Lease, WorkerId } from '../domain/ids.js';
import { refuseConflicts, workerConflicts } from '../domain/setting-conflicts.js';
import { bounds } from '../protocol/bounds.js';
import { checkOptions, type KindsOf } from '../protocol/options.js';
import { checkWhole } from '../protocol/values.js';
import type {
  Heartbeat,
  HeartbeatAnswer,
  Held,
  Registration,
  WorkerApi,
} from '../protocol/workers-api.js';
import { createLog, type Logger } from '../runtime/log.js';
import {
  defaultTransitionMode,
  transitionModes,
  type TransitionMode,
} from '../runtime/log-format.js';
import { TransitionLog } from '../runtime/transition-log.js';
import { AttemptLog } from './attempt-log.js';
import { asLogged } from './backoff.js';
import { checkDefinition } from './check-definition.js';
import { ClaimLoop } from './claim-loop.js';
import { CpuUsage } from './cpu-usage.js';
import { definitionsOf } from './definitions.js';
import { drain } from './drain.js';
import type { TaskHandler } from './handler.js';
import { judgeHealth, type WorkerHealth } from './health.js';
import { HeartbeatLoop } from './heartbeat.js';
import { InFlight } from './in-flight.js';
import { tell, type WorkerObserver } from './observer.js';
import { NewsLoop, type Polled } from './poll-loop.js';
import { PressureGauge } from './pressure.js';
import { Reports } from './reports.js';
import { Retirement } from './retirement.js';
import { Runner } from './runner.js';
import { Session } from './session.js';
import { Slots } from './slots.js';
import type { AttemptTracing } from './tracing.js';
import { within } from './within.js';

export interface WorkerOptions {
  /** Tasks in flight at once. Default 1,000. */
  readonly concurrency?: number;
  /** Tasks that one claim asks for at most. Default 50. While work keeps coming, up to four claims go in one request. */
  readonly claimBatch?: number;
  /** What tasks may require of a worker, for example `gpu`. */
  readonly capabilities?: readonly string[];
  /** Absent: tasks of every queue. */
  readonly queues?: readonly string[];
  /** What people see in the list of workers. */
  readonly name?: string;
  /**
   * Of its code, for example that of package.json. Where two workers define a task type differently, the definition
   * of the newer version counts; without versions that of the worker that registered last.
   */
  readonly version?: string;
  /** How long `stop` waits for what runs before it gives it back. */
  readonly drainTimeoutMs?: number;
  /** It stops by itself when nothing ran for so long. Absent: never. */
  readonly maxIdleMs?: number;
  /** It stops by itself, as after `stop`, when it is older. Absent: never. */
  readonly maxLifetimeMs?: number;
  /**
   * What it may use, where the container's limit can't be seen or is shared by several processes.
   * Above 80 % it claims less, above 95 % one task at a time.
   */
  readonly memoryLimitBytes?: number;
  /** It claims less while the 99th percentile of its tasks' durations is above this. Absent: durations don't matter. */
  readonly latencyThresholdMs?: number;
  readonly observer?: WorkerObserver;
  /** Makes spans of its attempts; `instrument` of `sluice/otel` gives it to the workers of a Sluice. */
  readonly tracing?: AttemptTracing;
  /** Absent: on stderr from level info on, pretty in a terminal and JSON elsewhere. */
  readonly log?: Logger;
  /**
   * Which of its attempts are logged. Default `problems`: those that fail. In a process that serves, whose `log` has
   * them already, the default is `off`.
   */
  readonly logTransitions?: TransitionMode;
}

const optionKinds: KindsOf<WorkerOptions> = {
  concurrency: 'number',
  claimBatch: 'number',
  capabilities: 'array',
  queues: 'array',
  name: 'string',
  version: 'string',
  drainTimeoutMs: 'number',
  maxIdleMs: 'number',
  maxLifetimeMs: 'number',
  memoryLimitBytes: 'number',
  latencyThresholdMs: 'number',
  observer: 'object',
  tracing: 'object',
  log: 'object',
  logTransitions: transitionModes,
};
const defaultConcurrency = 1_000;
const defaultDrainTimeoutMs = 30_000;
/** Results that may wait for the server before no more tasks are claimed. */
const minUnacknowledged = 1_000;
const maxUnacknowledgedBytes = 64 * 1024 * 1024;
const goodbyeMs = 5_000;
const tellRefusalEveryMs = 60_000;

/** Takes tasks that its handlers can do, runs them, and reports what became of them. */
export class Worker implements AsyncDisposable {
  readonly #drainTimeoutMs: number;
  readonly #log: Logger;
  readonly #session: Session;
  readonly #slots: Slots;
  readonly #inFlight = new InFlight();
  readonly #reports: Reports;
  readonly #pressure: PressureGauge;
  readonly #cpu = new CpuUsage();
  readonly #retirement: Retirement;
  readonly #attempts: AttemptLog;
  readonly #runner: Runner;
  readonly #claims: ClaimLoop;
  readonly #news: NewsLoop;
  readonly #heartbeat: HeartbeatLoop;
  /** Of what was claimed under an id that the server does not know any more. */
  readonly #formerLeases = new Set<Lease>();
  readonly #stopping = new AbortController();
  /** Resolves when it has stopped, also when the server told it to, or it retired. */
  readonly stopped: Promise<void>;
  #resolveStopped: () => void = () => undefined;
  #starting: Promise<void> | null = null;
  #ending: Promise<void> | null = null;
  #leaving: Promise<void> | null = null;
  #refusalToldAtMs = -Infinity;

  constructor(api: WorkerApi, handlers: readonly TaskHandler[], options: WorkerOptions = {}) {
    checkOptions(optionKinds, options);
    const byName = byType(handlers);
    const concurrency = options.concurrency ?? defaultConcurrency;
    checkWhole('/concurrency', concurrency, 1, bounds.capacity);
    const { claimBatch = defaultClaimBatch } = options;
    checkWhole('/claimBatch', claimBatch, 1, bounds.pollTasks);
    const { drainTimeoutMs = defaultDrainTimeoutMs, maxIdleMs, maxLifetimeMs } = options;
    refuseConflicts(workerConflicts({ drainTimeoutMs, maxIdleMs, maxLifetimeMs }));
    const log = options.log ?? createLog('info');
    const session = new Session({
      api,
      registration: registration(handlers, concurrency, options, log),
      log,
      onKeyRefused: (refusal) => this.#heedRefusal(refusal),
      onRegisteredAgain: () => this.#noteFormer(this.#held),
    });
    const slots = new Slots(concurrency);
    const reports = new Reports({
      send: (batch) => session.call((workerId) => api.report(workerId, batch)),
      maxUnacknowledged: Math.max(minUnacknowledged, concurrency),
      maxUnacknowledgedBytes,
      onUndelivered: () => this.#heartbeat.wake(),
      log,
    });
    const pressure = new PressureGauge(options);
    const { observer, tracing } = options;
    const polling = {
      session,
      slots,
      onAnswer: (answer: Polled) => this.#heed(answer),
      log,
    };
    this.#drainTimeoutMs = drainTimeoutMs;
    this.#log = log;
    this.#session = session;
    this.#slots = slots;
    this.#reports = reports;
    this.#pressure = pressure;
    this.#retirement = new Retirement({
      ...options,
      slots,
      mustStay: () => this.#claims.isFailing || !reports.isEmpty,
      retire: (why) => this.#retire(why),
    });
    const inFlight = this.#inFlight;
    const mode = options.logTransitions ?? defaultTransitionMode;
    this.#attempts = new AttemptLog(new TransitionLog(log, { mode }), () => this.id);
    this.#runner = new Runner({
      handlers: byName,
      session,
      slots,
      inFlight,
      reports,
      attempts: this.#attempts,
      pressure,
      observer,
      tracing,
      log,
    });
    this.#claims = new ClaimLoop({ ...polling, reports, pressure, observer, claimBatch });
    this.#news = new NewsLoop(polling);
    this.#heartbeat = new HeartbeatLoop({
      terms: () => session.terms,
      // Composed for each id: one that registers again brings the leases at once.
      send: () => session.call((workerId) => api.heartbeat(workerId, this.#composeBeat())),
      onAnswer: (answer) => this.#heedBeat(answer),
      onSilence: () => this.#fallSilent(),
      onFailure: () => tell(log, () => observer?.heartbeatFailed?.()),
      log,
    });
    this.stopped = new Promise((resolve) => {
      this.#resolveStopped = resolve;
    });
  }

  /** Null before it has registered. */
  get id(): WorkerId | null {
    return this.#session.isOpen ? this.#session.terms.workerId : null;
  }

  get inFlight(): number {
    return this.#slots.used;
  }

  /** How many tasks it runs at once. */
  get capacity(): number {
    return this.#slots.size;
  }

  /** Whether its server hears it and its event loop runs. */
  get health(): WorkerHealth {
    const { isOpen } = this.#session;
    return judgeHealth({
      isRegistered: isOpen,
      isDraining: !this.#takesTasks,
      failedHeartbeats: this.#heartbeat.failures,
      sinceHeartbeatMs: this.#heartbeat.sinceHeardMs,
      heartbeatIntervalMs: isOpen ? this.#session.terms.heartbeatIntervalMs : 0,
      eventLoopDelayMs: this.#pressure.read().eventLoopDelayMs,
    });
  }

  /** Resolves when the server knows it; waits for a server that is away, rejects when refused. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /** Takes nothing new, lets what runs finish, gives the rest back. Resolves when nothing is left. */
  stop(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #start(): Promise<void> {
    if (this.#isStopping) throw new Error('A worker that was stopped does not start again');
    await this.#session.open(this.#stopping.signal);
    if (!this.#session.isOpen) return;
    this.#pressure.start();
    this.#heartbeat.start();
    this.#claims.start();
    this.#news.start();
    this.#retirement.start();
  }

  async #end(): Promise<void> {
    this.#stopping.abort();
    this.#retirement.stop();
    await this.#starting?.catch(() => undefined);
    await this.#claims.stop();
    if (this.#session.isOpen) await this.#drain();
    await Promise.all([this.#news.stop(), this.#heartbeat.stop()]);
    this.#pressure.stop();
    if (this.#session.isOpen) await this.#sayGoodbye();
    this.#attempts.close();
    this.#resolveStopped();
  }

  async #drain(): Promise<void> {
    this.#news.drain();
    await drain({
      timeoutMs: this.#drainTimeoutMs,
      slots: this.#slots,
      inFlight: this.#inFlight,
      reports: this.#reports,
      leaseLeftMs: () => this.#heartbeat.leaseLeftMs,
      release: (held) => this.#release(held),
      log: this.#log,
    });
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  get #takesTasks(): boolean {
    return !this.#isStopping && this.#leaving === null;
  }

  #heed({ tasks, cancelled, drain: shouldDrain, workerId }: Polled): void {
    if (workerId !== this.#session.terms.workerId) this.#noteFormer(tasks);
    if (!this.#takesTasks && tasks.length > 0) void this.#release(tasks);
    else this.#runner.begin(tasks);
    this.#inFlight.abort(cancelled, 'cancelled');
    if (shouldDrain) void this.stop();
  }

  #heedBeat({ cancelled, lost, shouldDrain }: HeartbeatAnswer): void {
    this.#inFlight.abort(cancelled, 'cancelled');
    this.#inFlight.abort(lost, 'lease_lost');
    if (shouldDrain) void this.stop();
  }

  /**
   * Its key was revoked, or has expired. It takes nothing new, finishes what it has, and leaves when the
   * server has answered all its results: until `stop` ends that, they are kept for a key that works again.
   */
  #heedRefusal({ message }: SluiceError): void {
    const nowMs = performance.now();
    if (nowMs - this.#refusalToldAtMs >= tellRefusalEveryMs) {
      this.#refusalToldAtMs = nowMs;
      const [tasks, results] = [this.#inFlight.size, this.#reports.unacknowledged.length];
      this.#log.error(
        { reason: message, tasks, results },
        'the server refuses the API key of this worker: it keeps its results and takes no new tasks',
      );
    }
    this.#leaving ??= this.#leaveWhenDone();
  }

  async #leaveWhenDone(): Promise<void> {
    const { signal } = this.#stopping;
    this.#retirement.stop();
    await this.#claims.stop();
    this.#news.drain();
    await this.#slots.whenIdle(signal);
    await this.#reports.whenEmpty(signal);
    await this.stop();
  }

  #retire(why: string): void {
    this.#log.info(`${why}: the worker retires`);
    void this.stop();
  }

  #fallSilent(): void {
    if (this.#inFlight.size === 0) return;
    this.#log.error(
      { tasks: this.#inFlight.size },
      'no heartbeat arrives: letting go of all tasks',
    );
    this.#inFlight.abortAll('lease_lost');
  }

  /** A result that is not acknowledged counts as held: its task must not be given to another. */
  get #held(): readonly Held[] {
    return [...this.#inFlight.named, ...this.#reports.unacknowledged];
  }

  #noteFormer(held: readonly Held[]): void {
    for (const { lease } of held) this.#formerLeases.add(lease);
  }

  /** As soon as it holds nothing of a former id, a heartbeat is as small as before. */
  #needsLeases(held: readonly Held[]): boolean {
    if (this.#formerLeases.size === 0) return false;
    if (held.some(({ lease }) => this.#formerLeases.has(lease))) return true;
    this.#formerLeases.clear();
    return false;
  }

  #composeBeat(): Heartbeat {
    const { used, free, size } = this.#slots;
    const { memoryShare, eventLoopDelayMs } = this.#pressure.read();
    const { failuresInARow } = this.#runner;
    const held = this.#held;
    const { undelivered } = this.#reports;
    return {
      currentLoad: used,
      status: this.#takesTasks ? 'active' : 'draining',
      currentTasks: held.map(({ taskId }) => taskId),
      ...(this.#needsLeases(held) ? { leases: held.map(({ lease }) => lease) } : {}),
      ...(undelivered.length === 0 ? {} : { undelivered }),
      availableCapacity: this.#takesTasks ? free : 0,
      maxCapacity: size,
      memoryUsage: rounded(memoryShare, 4),
      eventLoopDelayMs: rounded(eventLoopDelayMs, 1),
      cpuUsage: rounded(this.#cpu.read(), 2),
      ...(failuresInARow === 0 ? {} : { consecutiveFailures: failuresInARow }),
    };
  }

  async #release(held: readonly Held[]): Promise<void> {
    const leases = held.map(({ taskId, lease }) => ({ taskId, lease }));
    await this.#lastCall('release', (workerId) => this.#session.api.release(workerId, leases));
  }

  /** The server gives back what it still believes to be here. */
  async #sayGoodbye(): Promise<void> {
    await this.#lastCall('deregister', (workerId) => this.#session.api.deregister(workerId));
  }

  /** Nothing is lost when it fails: the leases lapse. */
  async #lastCall(name: string, call: (workerId: WorkerId) => Promise<unknown>): Promise<void> {
    try {
      await within(goodbyeMs, call(this.#session.terms.workerId));
    } catch (error) {
      this.#log.warn(asLogged(error), `${name} did not arrive`);
    }
  }
}

/** A heartbeat is no larger than it has to be. */
function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

function registration(
  handlers: readonly TaskHandler[],
  capacity: number,
  { capabilities, queues, name, version }: WorkerOptions,
  log: Logger,
): Registration {
  const { definitions, notes } = definitionsOf(handlers);
  for (const note of notes) log.warn(note);
  return {
    taskTypes: handlers.map(({ type }) => type),
    definitions,
    capacity,
    host: hostname(),
    ...(capabilities === undefined ? {} : { capabilities }),
    ...(queues === undefined ? {} : { queues }),
    ...(name === undefined ? {} : { name }),
    ...(version === undefined ? {} : { version }),
  };
}

function byType(handlers: readonly TaskHandler[]): ReadonlyMap<string, TaskHandler> {
  if (handlers.length === 0) throw new TypeError('A worker needs at least one task definition');
  handlers.forEach(checkDefinition);
  const map = new Map(handlers.map((handler) => [handler.type, handler]));
  if (map.size === handlers.length) return map;
  const types = handlers.map(({ type }) => type);
  const twice = types.filter((type, index) => types.indexOf(type) !== index);
  throw new TypeError(
    `Defined twice: ${[...new Set(twice)].join(', ')}. A worker runs one definition of each task type.`,
  );
}
