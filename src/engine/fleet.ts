import { SluiceError } from '../domain/errors.js';
import { IdSource, type TaskId, type WorkerId } from '../domain/ids.js';
import { namesOf, weightOf, type Offer } from '../domain/offer.js';
import { bounds } from '../protocol/bounds.js';
import type { Registered, Registration, WorkerOffer } from '../protocol/workers-api.js';
import type { TakeRequest } from '../ready/ready-queue.js';
import { findOffers, findWorkers, registerWorker } from '../store/workers.js';
import { instant, type EngineContext } from './context.js';

/** Of a worker that registers and names none. */
const defaultCapacity = 5;
/** Of all workers together: 20,000 that name 100 task types each. One that names all it may takes half a megabyte. */
const defaultMaxBytes = 128 * 1024 * 1024;
const bytesOfWorker = 500;

export interface KnownWorker {
  readonly workerId: WorkerId;
  /** The API key that registered it; null: none did. */
  readonly owner: string | null;
  /** Null: not read yet. Only a poll needs it, see `offerOf`. */
  offer: WorkerOffer | null;
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
  bytes: number;
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
    refuseTooManyNames(registration);
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

  /** What a worker registered for. A heartbeat makes a worker known without it. */
  async offerOf(worker: KnownWorker): Promise<WorkerOffer> {
    return worker.offer ?? (await this.#readOffer(worker));
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
        return there ?? this.#add({ workerId, owner }, null, capacity, status === 'draining');
      });
  }

  async #readOffer(worker: KnownWorker): Promise<WorkerOffer> {
    const { workerId } = worker;
    const found = (await findOffers(this.#context.db.vital, [workerId])).get(workerId);
    if (found === undefined) throw unknownWorker(workerId);
    const offer = toOffer(found);
    // Unless another poll of it has read it meanwhile.
    if (worker.offer === null) {
      const bytes = bytesOf(offer);
      const isRemembered = this.#workers.get(workerId) === worker;
      if (isRemembered) this.#bytes += bytes - worker.bytes;
      worker.offer = offer;
      worker.bytes = bytes;
      if (isRemembered) this.#forgetSomeBut(workerId);
    }
    return offer;
  }

  #add(
    who: Pick<KnownWorker, 'workerId' | 'owner'>,
    offer: WorkerOffer | null,
    capacity: number,
    draining: boolean,
  ): KnownWorker {
    const { workerId } = who;
    const worker = known(who, offer, capacity, draining, this.#nowMs());
    this.#workers.set(workerId, worker);
    this.#bytes += worker.bytes;
    this.#forgetSomeBut(workerId);
    return worker;
  }

  /** Until the others fit. */
  #forgetSomeBut(kept: WorkerId): void {
    for (const silent of this.#workers.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      if (silent !== kept) this.forget(silent);
    }
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

const namedAtMost = bounds.workerNamesBytes;

/** Servers hold the names of all workers in memory, and compare them with the work that waits. */
function refuseTooManyNames(registration: Registration): void {
  const bytes = namesOf(toNames(registration)).reduce(
    (sum, name) => sum + Buffer.byteLength(name),
    0,
  );
  if (bytes <= namedAtMost) return;
  const detail =
    `The names of task_types, queues and capabilities take ${String(bytes)} bytes together; ` +
    `${String(namedAtMost)} are the most. Name fewer, or leave task_types or queues out for all of them.`;
  const errors = [{ path: '/task_types', message: `take more than ${String(namedAtMost)} bytes` }];
  throw new SluiceError('invalid_request', detail, { errors });
}

/** What a poll names replaces what was registered, for this poll. */
export function takeRequest(offer: WorkerOffer, poll: WorkerOffer, count: number): TakeRequest {
  return {
    taskTypes: orAll(poll.taskTypes ?? offer.taskTypes),
    capabilities: poll.capabilities ?? offer.capabilities ?? [],
    queues: orAll(poll.queues ?? offer.queues),
    count,
  };
}

function orAll(names: readonly string[] | undefined): readonly string[] | null {
  return names === undefined || names.includes('*') ? null : names;
}

function toOffer({ taskTypes, queues, capabilities }: Offer): WorkerOffer {
  return {
    ...(capabilities === null ? {} : { capabilities }),
    ...(taskTypes === null ? {} : { taskTypes }),
    ...(queues === null ? {} : { queues }),
  };
}

function toNames({ taskTypes, queues, capabilities }: WorkerOffer): Offer {
  return {
    taskTypes: taskTypes ?? null,
    queues: queues ?? null,
    capabilities: capabilities ?? null,
  };
}

function known(
  { workerId, owner }: Pick<KnownWorker, 'workerId' | 'owner'>,
  given: WorkerOffer | null,
  capacity: number,
  draining: boolean,
  heardMs: number,
): KnownWorker {
  const offer = given === null ? null : toOffer(toNames(given));
  const cancelled = new Set<TaskId>();
  const missing: KnownWorker['missing'] = new Map();
  return {
    ...{ workerId, owner, offer, capacity, draining, cancelled, missing, heardMs },
    load: 0,
    bytes: bytesOf(offer),
  };
}

function bytesOf(offer: WorkerOffer | null): number {
  return bytesOfWorker + (offer === null ? 0 : weightOf(toNames(offer)));
}
