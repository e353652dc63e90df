import { SluiceError } from '../domain/errors.js';
import { IdSource, type TaskId, type WorkerId } from '../domain/ids.js';
import { bounds } from '../protocol/bounds.js';
import type { Registered, Registration, WorkerOffer } from '../protocol/workers-api.js';
import type { TakeRequest } from '../ready/ready-queue.js';
import { findWorkers, registerWorker } from '../store/workers.js';
import { instant, type EngineContext } from './context.js';

/** Of a worker that registers and names none. */
const defaultCapacity = 5;
/** Of all workers together: 20,000 that name 100 task types each. One that names all it may takes half a megabyte. */
const defaultMaxBytes = 128 * 1024 * 1024;
const bytesOfWorker = 500;
const bytesOfName = 40;

export interface KnownWorker {
  readonly workerId: WorkerId;
  /** The API key that registered it; null: none did. */
  readonly owner: string | null;
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
  /** What it takes to remember it, about. */
  readonly bytes: number;
}

/** The workers this process has heard of. The rows in Postgres decide who is alive. */
export class Fleet {
  readonly #context: EngineContext;
  readonly #serverId: string;
  readonly #maxBytes: number;
  /** Who was heard last stands last. */
  readonly #workers = new Map<WorkerId, KnownWorker>();
  #bytes = 0;
  /** In the order of registration: what a stable order of workers goes by. */
  readonly #ids = new IdSource();

  constructor(context: EngineContext, serverId: string, maxBytes = defaultMaxBytes) {
    this.#context = context;
    this.#serverId = serverId;
    this.#maxBytes = maxBytes;
  }

  async register(registration: Registration): Promise<Registered> {
    const { db, settings } = this.#context;
    const workerId = this.#ids.nextWorkerId(db.nowMs());
    const capacity = registration.capacity ?? defaultCapacity;
    const now = instant(this.#context);
    await registerWorker(db, workerId, { ...registration, capacity }, now, this.#serverId);
    this.#add({ workerId, owner: registration.owner ?? null }, registration, capacity, false);
    return {
      workerId,
      heartbeatIntervalMs: settings.heartbeatIntervalMs,
      leaseMs: settings.leaseMs,
      pollWaitSeconds: settings.pollWaitSeconds,
    };
  }

  /** Also after a restart: what this process does not know, Postgres may. */
  async get(workerId: WorkerId): Promise<KnownWorker> {
    const worker = this.#workers.get(workerId) ?? (await this.#read([workerId]))[0];
    if (worker === undefined) throw unknownWorker(workerId);
    worker.heardMs = this.#nowMs();
    // Unless it was forgotten meanwhile, with so many others to be remembered.
    if (this.#workers.delete(workerId)) this.#workers.set(workerId, worker);
    return worker;
  }

  /** A worker of another key is as unknown as one that there is not. Null owner: any key may use it. */
  async refuseForeign(workerId: WorkerId, owner: string): Promise<void> {
    const worker = this.#workers.get(workerId) ?? (await this.#read([workerId]))[0];
    if (worker === undefined || worker.owner === null || worker.owner === owner) return;
    throw unknownWorker(workerId);
  }

  /** All that this process does not know, in one statement. */
  async meet(workerIds: readonly WorkerId[]): Promise<void> {
    const strangers = workerIds.filter((workerId) => !this.#workers.has(workerId));
    if (strangers.length > 0) await this.#read(strangers);
  }

  get size(): number {
    return this.#workers.size;
  }

  find(workerId: WorkerId): KnownWorker | null {
    return this.#workers.get(workerId) ?? null;
  }

  clear(): void {
    this.#workers.clear();
    this.#bytes = 0;
  }

  forget(workerId: WorkerId): void {
    this.#bytes -= this.#workers.get(workerId)?.bytes ?? 0;
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
      if (heardMs >= sinceMs) return;
      this.forget(workerId);
    }
  }

  /** Those that live. */
  async #read(workerIds: readonly WorkerId[]): Promise<KnownWorker[]> {
    const rows = await findWorkers(this.#context.db.vital, workerIds);
    return rows
      .filter(({ status }) => status !== 'dead')
      .map((row) => {
        const { workerId, owner, status, capacity } = row;
        // One that came meanwhile may have news already.
        const there = this.#workers.get(workerId);
        return (
          there ?? this.#add({ workerId, owner }, toOffer(row), capacity, status === 'draining')
        );
      });
  }

  #add(
    who: Pick<KnownWorker, 'workerId' | 'owner'>,
    offer: WorkerOffer,
    capacity: number,
    draining: boolean,
  ): KnownWorker {
    const { workerId } = who;
    const worker = known(who, offer, capacity, draining, this.#nowMs());
    this.#workers.set(workerId, worker);
    this.#bytes += worker.bytes;
    for (const silent of this.#workers.keys()) {
      if (this.#bytes <= this.#maxBytes || silent === workerId) break;
      this.forget(silent);
    }
    return worker;
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
  { workerId, owner }: Pick<KnownWorker, 'workerId' | 'owner'>,
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
  const bytes = bytesOf(offer);
  const missing: KnownWorker['missing'] = new Map();
  return {
    workerId,
    owner,
    offer,
    capacity,
    load: 0,
    draining,
    cancelled,
    missing,
    heardMs,
    bytes,
  };
}

function bytesOf({ capabilities = [], taskTypes = [], queues = [] }: WorkerOffer): number {
  return [...capabilities, ...taskTypes, ...queues].reduce(
    (sum, name) => sum + bytesOfName + name.length,
    bytesOfWorker,
  );
}
