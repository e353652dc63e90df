import { circuitState, type CircuitState } from '../domain/circuit-text.js';
import { priorities } from '../domain/priority.js';
import type { Statistics } from '../protocol/statistics-api.js';
import { countHeldAndEnded } from '../store/statistics.js';
import { countWorkers } from '../store/workers.js';
import type { Admission } from './admission.js';
import type { Bench } from './bench.js';
import { approximateNow, instant, type EngineContext } from './context.js';
import type { Line, LineSnapshot } from './line.js';
import type { LiveQueues } from './live-queues.js';
import type { QueueDirectory } from './queue-directory.js';
import { tokensLeft } from './queue-view.js';
import { Refreshed } from './refreshed.js';
import { Throttling } from './throttling.js';

/** States of tasks that have not ended well; `completed` and `cancelled` ones are history. */
export type PresentState =
  'pending' | 'queued' | 'assigned' | 'executing' | 'dead_letter' | 'failed';

export interface Measured {
  readonly line: LineSnapshot;
  readonly states: Readonly<Record<PresentState, number>>;
  readonly workers: Statistics['workers'];
  readonly suspendedWorkers: number;
  /** Tasks that have not ended. */
  readonly active: number;
}

/** Of a queue that metrics name. */
export interface MeasuredQueue {
  readonly tokens: Readonly<Record<string, number>>;
  readonly circuit: CircuitState;
}

export interface MeasurementsParts {
  readonly admission: Admission;
  readonly bench: Bench;
  readonly line: Line;
  readonly live: LiveQueues;
  readonly queues: QueueDirectory;
}

/** How often it is looked what holds queues back. */
const watchMs = 5_000;
/** While long lines are counted for the first time. */
const countingOnMs = 250;
const pausePerLook = 5;

/** The present state of all queues and workers, for metrics. */
export class Measurements {
  readonly throttling = new Throttling();
  readonly #context: EngineContext;
  readonly #parts: MeasurementsParts;
  readonly #measured: Refreshed<Measured>;
  #watchedMs: number | null = null;

  constructor(context: EngineContext, parts: MeasurementsParts) {
    this.#context = context;
    this.#parts = parts;
    this.#measured = new Refreshed(() => this.#measure());
  }

  get(): Promise<Measured> {
    return this.#measured.get();
  }

  /** Queues that somebody configured: metrics name them before others. */
  configured(): ReadonlySet<string> {
    return this.#parts.queues.configured();
  }

  async lookAt(names: Iterable<string>): Promise<ReadonlyMap<string, MeasuredQueue>> {
    const { queues, live } = this.#parts;
    const all = [...names];
    const limited = all.filter((name) => queues.settingsOf(name).limits.length > 0);
    const seen = await live.lately(limited);
    const nowMs = approximateNow(this.#context).getTime();
    const measured = all.map((name) => {
      const tokens = tokensLeft(seen.get(name)?.buckets ?? []);
      return [name, { tokens, circuit: circuitState(queues.circuitOf(name), nowMs) }] as const;
    });
    return new Map(measured);
  }

  /** Looks what holds queues back. */
  async tick(): Promise<number> {
    const { line, queues } = this.#parts;
    const beganMs = performance.now();
    const snapshot = await line.lookNow();
    const nowMs = performance.now();
    const sinceMs = this.#watchedMs ?? nowMs;
    this.#watchedMs = nowMs;
    const spanSeconds = (nowMs - sinceMs) / 1000;
    this.throttling.note(snapshot.queues, (queue) => queues.circuitOf(queue), spanSeconds);
    const countingMs = Math.min(watchMs, Math.max(countingOnMs, (nowMs - beganMs) * pausePerLook));
    return snapshot.isWhole ? watchMs : countingMs;
  }

  async #measure(): Promise<Measured> {
    const { admission, bench, line } = this.#parts;
    const { reads } = this.#context.db;
    const [snapshot, workers, held, { active }] = await Promise.all([
      line.snapshot(),
      countWorkers(reads, instant(this.#context)),
      countHeldAndEnded(reads),
      admission.standing(),
    ]);
    const queued = priorities.reduce((sum, one) => sum + snapshot.total[one].count, 0);
    return {
      line: snapshot,
      states: {
        // What is active is counted exactly. These are some moments apart.
        pending: Math.max(0, active - queued - held.assigned - held.executing),
        queued,
        assigned: held.assigned,
        executing: held.executing,
        dead_letter: held.deadLetter,
        failed: held.failed,
      },
      workers,
      suspendedWorkers: bench.suspended(),
      active,
    };
  }
}
