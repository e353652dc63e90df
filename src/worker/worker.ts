import { hostname, totalmem } from 'node:os';
import type { WorkerId } from '../domain/ids.js';
import type {
  Heartbeat,
  HeartbeatAnswer,
  Held,
  PollAnswer,
  Registration,
  WorkerApi,
} from '../protocol/api.js';
import { createLog, type Logger } from '../runtime/log.js';
import { asLogged } from './backoff.js';
import { drain } from './drain.js';
import type { TaskHandler } from './handler.js';
import { HeartbeatLoop } from './heartbeat.js';
import { InFlight } from './in-flight.js';
import { ClaimLoop, NewsLoop } from './poll-loop.js';
import { Reports } from './reports.js';
import { Runner } from './runner.js';
import { Session } from './session.js';
import { Slots } from './slots.js';
import { within } from './within.js';

export interface WorkerOptions {
  /** Tasks in flight at once. */
  readonly concurrency?: number;
  /** What tasks may require of a worker, for example `gpu`. */
  readonly capabilities?: readonly string[];
  /** Absent: tasks of every queue. */
  readonly queues?: readonly string[];
  /** What people see in the list of workers. */
  readonly name?: string;
  /** How long `stop` waits for what runs before it gives it back. */
  readonly drainTimeoutMs?: number;
  readonly log?: Logger;
}

const defaultConcurrency = 1_000;
const defaultDrainTimeoutMs = 30_000;
/** Results that may wait for the server before no more tasks are claimed. */
const minUnacknowledged = 1_000;
const goodbyeMs = 5_000;

/** Takes tasks that its handlers can do, runs them, and reports what became of them. */
export class Worker implements AsyncDisposable {
  readonly #drainTimeoutMs: number;
  readonly #log: Logger;
  readonly #session: Session;
  readonly #slots: Slots;
  readonly #inFlight = new InFlight();
  readonly #reports: Reports;
  readonly #runner: Runner;
  readonly #claims: ClaimLoop;
  readonly #news: NewsLoop;
  readonly #heartbeat: HeartbeatLoop;
  readonly #stopping = new AbortController();
  /** Resolves when it has stopped, also when the server told it to. */
  readonly stopped: Promise<void>;
  #resolveStopped: () => void = () => undefined;
  #starting: Promise<void> | null = null;
  #ending: Promise<void> | null = null;

  constructor(api: WorkerApi, handlers: readonly TaskHandler[], options: WorkerOptions = {}) {
    const concurrency = options.concurrency ?? defaultConcurrency;
    const log = options.log ?? createLog('warn');
    const session = new Session(api, registration(handlers, concurrency, options), log);
    const slots = new Slots(concurrency);
    const reports = new Reports({
      send: (batch) => session.call((workerId) => api.report(workerId, batch)),
      maxUnacknowledged: Math.max(minUnacknowledged, concurrency),
      log,
    });
    const polling = {
      session,
      slots,
      reports,
      onAnswer: (answer: PollAnswer) => this.#heed(answer),
      log,
    };
    this.#drainTimeoutMs = options.drainTimeoutMs ?? defaultDrainTimeoutMs;
    this.#log = log;
    this.#session = session;
    this.#slots = slots;
    this.#reports = reports;
    const inFlight = this.#inFlight;
    this.#runner = new Runner({
      handlers: byType(handlers),
      session,
      slots,
      inFlight,
      reports,
      log,
    });
    this.#claims = new ClaimLoop(polling);
    this.#news = new NewsLoop(polling);
    this.#heartbeat = new HeartbeatLoop({
      terms: () => session.terms,
      compose: () => this.#composeBeat(),
      send: (beat) => session.call((workerId) => api.heartbeat(workerId, beat)),
      onAnswer: (answer) => this.#heedBeat(answer),
      onSilence: () => this.#fallSilent(),
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
    this.#heartbeat.start();
    this.#claims.start();
    this.#news.start();
  }

  async #end(): Promise<void> {
    this.#stopping.abort();
    await this.#starting?.catch(() => undefined);
    await this.#claims.stop();
    if (this.#session.isOpen) await this.#drain();
    await Promise.all([this.#news.stop(), this.#heartbeat.stop()]);
    if (this.#session.isOpen) await this.#sayGoodbye();
    this.#resolveStopped();
  }

  async #drain(): Promise<void> {
    this.#news.drain();
    await drain({
      timeoutMs: this.#drainTimeoutMs,
      slots: this.#slots,
      inFlight: this.#inFlight,
      reports: this.#reports,
      release: (held) => this.#release(held),
      log: this.#log,
    });
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  #heed({ tasks, cancelled, drain: shouldDrain }: PollAnswer): void {
    if (this.#isStopping && tasks.length > 0) void this.#release(tasks);
    else for (const task of tasks) this.#runner.begin(task);
    this.#inFlight.abort(cancelled, 'cancelled');
    if (shouldDrain) void this.stop();
  }

  #heedBeat({ cancelled, lost, shouldDrain }: HeartbeatAnswer): void {
    this.#inFlight.abort(cancelled, 'cancelled');
    this.#inFlight.abort(lost, 'lease_lost');
    if (shouldDrain) void this.stop();
  }

  #fallSilent(): void {
    if (this.#inFlight.size === 0) return;
    this.#log.error(
      { tasks: this.#inFlight.size },
      'no heartbeat arrives: letting go of all tasks',
    );
    this.#inFlight.abortAll('lease_lost');
  }

  #composeBeat(): Heartbeat {
    const { used, free, size } = this.#slots;
    return {
      currentLoad: used,
      status: this.#isStopping ? 'draining' : 'active',
      // A result that is not acknowledged counts as held: its task must not be given to another.
      currentTasks: [...this.#inFlight.taskIds, ...this.#reports.unacknowledged],
      availableCapacity: this.#isStopping ? 0 : free,
      maxCapacity: size,
      memoryUsage: process.memoryUsage.rss() / memoryLimit(),
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

function registration(
  handlers: readonly TaskHandler[],
  capacity: number,
  { capabilities, queues, name }: WorkerOptions,
): Registration {
  return {
    taskTypes: handlers.map(({ type }) => type),
    capacity,
    host: hostname(),
    ...(capabilities === undefined ? {} : { capabilities }),
    ...(queues === undefined ? {} : { queues }),
    ...(name === undefined ? {} : { name }),
  };
}

function byType(handlers: readonly TaskHandler[]): ReadonlyMap<string, TaskHandler> {
  if (handlers.length === 0) throw new TypeError('A worker needs at least one task definition');
  const map = new Map(handlers.map((handler) => [handler.type, handler]));
  if (map.size === handlers.length) return map;
  const twice = handlers.filter((handler) => map.get(handler.type) !== handler);
  throw new TypeError(`Defined twice: ${twice.map(({ type }) => type).join(', ')}`);
}

/** The container's, if it has one that is less than the machine's. */
function memoryLimit(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
