import { SluiceError } from '../domain/errors.js';
import { IdSource, type TaskId, type WorkerId } from '../domain/ids.js';
import type { Registered, Registration, WorkerOffer } from '../protocol/api.js';
import { bounds } from '../protocol/bounds.js';
import type { TakeRequest } from '../ready/ready-queue.js';
import { findWorkers, registerWorker } from '../store/workers.js';
import { instant, type EngineContext } from './context.js';

const defaultCapacity = 1;

export interface KnownWorker {
  readonly workerId: WorkerId;
  readonly offer: WorkerOffer;
  readonly capacity: number;
  load: number;
  draining: boolean;
  /** Running tasks of its that were cancelled and that it has not been told of. */
  readonly cancelled: Set<TaskId>;
  /** Held in Postgres but not by the worker, and since when its heartbeats did not name it. */
  missing: ReadonlyMap<TaskId, number>;
  /** When it last polled or beat here. */
  heardMs: number;
}

/** The workers this process has heard of. The rows in Postgres decide who is alive. */
export class Fleet {
  readonly #context: EngineContext;
  readonly #workers = new Map<WorkerId, KnownWorker>();
  /** In the order of registration: what a stable order of workers goes by. */
  readonly #ids = new IdSource();

  constructor(context: EngineContext) {
    this.#context = context;
  }

  async register(registration: Registration): Promise<Registered> {
    const { db, settings } = this.#context;
    const workerId = this.#ids.nextWorkerId(db.nowMs());
    const capacity = registration.capacity ?? defaultCapacity;
    await registerWorker(db, workerId, { ...registration, capacity }, instant(this.#context));
    this.#add(workerId, registration, capacity, false);
    return {
      workerId,
      heartbeatIntervalMs: settings.heartbeatIntervalMs,
      leaseMs: settings.leaseMs,
      pollWaitSeconds: settings.pollWaitSeconds,
    };
  }

  /** Also after a restart: what this process does not know, Postgres may. */
  async get(workerId: WorkerId): Promise<KnownWorker> {
    await this.meet([workerId]);
    const worker = this.#workers.get(workerId);
    if (worker === undefined) throw unknownWorker(workerId);
    worker.heardMs = this.#nowMs();
    return worker;
  }

  /** All that this process does not know, in one statement. */
  async meet(workerIds: readonly WorkerId[]): Promise<void> {
    const strangers = workerIds.filter((workerId) => !this.#workers.has(workerId));
    if (strangers.length === 0) return;
    for (const row of await findWorkers(this.#context.db, strangers)) {
      const { workerId, status, capacity } = row;
      // One that came meanwhile may have news already.
      if (status === 'dead' || this.#workers.has(workerId)) continue;
      this.#add(workerId, toOffer(row), capacity, status === 'draining');
    }
  }

  get size(): number {
    return this.#workers.size;
  }

  find(workerId: WorkerId): KnownWorker | null {
    return this.#workers.get(workerId) ?? null;
  }

  clear(): void {
    this.#workers.clear();
  }

  forget(workerId: WorkerId): void {
    this.#workers.delete(workerId);
  }

  /**
   * Those who talk to another server by now, or whose end was told while nobody listened. What they
   * should have been told here would pile up. Who comes back is read again.
   */
  forgetSilent(): void {
    const { leaseMs } = this.#context.settings;
    // Longer than any poll waits.
    const sinceMs = this.#nowMs() - 2 * Math.max(leaseMs, bounds.waitSeconds * 1000);
    for (const [workerId, { heardMs }] of this.#workers) {
      if (heardMs < sinceMs) this.#workers.delete(workerId);
    }
  }

  #add(workerId: WorkerId, offer: WorkerOffer, capacity: number, draining: boolean): void {
    this.#workers.set(workerId, known(workerId, offer, capacity, draining, this.#nowMs()));
  }

  #nowMs(): number {
    const { clock } = this.#context;
    return clock === null ? performance.now() : clock.nowMs();
  }
}

export function unknownWorker(workerId: WorkerId): SluiceError {
  const detail = `Worker ${workerId} is not registered, or was silent for too long. Register again.`;
  return new SluiceError('worker_unknown', detail);
}

/** What a poll names replaces what was registered, for this poll. */
export function takeRequest(worker: KnownWorker, poll: WorkerOffer, count: number): TakeRequest {
  return {
    taskTypes: orAll(poll.taskTypes ?? worker.offer.taskTypes),
    capabilities: poll.capabilities ?? worker.offer.capabilities ?? [],
    queues: orAll(poll.queues ?? worker.offer.queues),
    count,
  };
}

function orAll(names: readonly string[] | undefined): readonly string[] | null {
  return names === undefined || names.includes('*') ? null : names;
}

function toOffer(row: {
  readonly capabilities: readonly string[];
  readonly taskTypes: readonly string[] | null;
  readonly queues: readonly string[] | null;
}): WorkerOffer {
  return {
    capabilities: row.capabilities,
    ...(row.taskTypes === null ? {} : { taskTypes: row.taskTypes }),
    ...(row.queues === null ? {} : { queues: row.queues }),
  };
}

function known(
  workerId: WorkerId,
  { capabilities, taskTypes, queues }: WorkerOffer,
  capacity: number,
  draining: boolean,
  heardMs: number,
): KnownWorker {
  const offer = {
    ...(capabilities === undefined ? {} : { capabilities }),
    ...(taskTypes === undefined ? {} : { taskTypes }),
    ...(queues === undefined ? {} : { queues }),
  };
  const cancelled = new Set<TaskId>();
  return { workerId, offer, capacity, load: 0, draining, cancelled, missing: new Map(), heardMs };
}
