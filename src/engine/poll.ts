import { defaultClaimBatch } from '../domain/claim-size.js';
import { SluiceError } from '../domain/errors.js';
import type { WorkerId } from '../domain/ids.js';
import type { ClaimedTask, PollAnswer, PollRequest, WorkerOffer } from '../protocol/workers-api.js';
import type { TakeAnswer, TakeRequest } from '../ready/ready-queue.js';
import type { Bench } from './bench.js';
import type { Claim } from './claim.js';
import type { EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import { takeRequest, type Fleet, type KnownWorker } from './fleet.js';
import type { PollWaiter, WakeUp } from './poll-waiter.js';
import type { PollWaiters } from './poll-waiters.js';
import type { QueueDirectory } from './queue-directory.js';
import type { Opening } from './wait-group.js';
import { lateMs } from './wish.js';

const closedWaitMs = 100;
const troubleWaitMs = 500;
/** Until the answers that are being sent leave room for another one. */
const fullWaitMs = 100;

export interface PollParts {
  readonly fleet: Fleet;
  readonly bench: Bench;
  /** How long it lets others go first; asked once for each look, since it may differ the next time. */
  readonly giveWayMs: (workerId: WorkerId) => number;
  readonly claim: Claim;
  readonly feeder: Feeder;
  readonly waiters: PollWaiters;
  /** Null while this process serves; else why it does not. */
  readonly notServing: () => string | null;
  readonly release: (tasks: readonly ClaimedTask[]) => Promise<unknown>;
  /** The ready queue lost its contents. */
  readonly rebuild: () => void;
  readonly queues: Pick<QueueDirectory, 'isInDoubt' | 'doubt' | 'settleDoubt'>;
}

/** One poll, from its beginning to its answer. */
interface Visit {
  readonly request: PollRequest;
  readonly sinceMs: number;
  readonly endsAtMs: number;
  readonly signal: AbortSignal | undefined;
  /** Whatever others with its filter have learned. */
  mustLook: boolean;
  /** Why it goes on; whoever holds it looks, or passes it on. */
  wakeUp: WakeUp | null;
}

interface Entered {
  readonly waiter: PollWaiter;
  readonly take: TakeRequest;
  readonly giveWayMs: number;
  /** How long it gets nothing, if it gets nothing. */
  readonly deniedMs: number;
}

type TakenEntries = TakeAnswer & { kind: 'taken' };
type Looked = TakenEntries | { readonly kind: 'wait'; readonly waitMs: number | null };

/** A worker asks for work and waits until there is some, or news for it, or its time is over. */
export class Poll {
  readonly #context: EngineContext;
  readonly #parts: PollParts;

  constructor(context: EngineContext, parts: PollParts) {
    this.#context = context;
    this.#parts = parts;
  }

  async poll(workerId: WorkerId, request: PollRequest, signal?: AbortSignal): Promise<PollAnswer> {
    const visit = beginVisit(request, signal);
    try {
      while (!hasLeft(signal)) {
        this.#refuseUnlessServing();
        const worker = await this.#parts.fleet.get(workerId);
        if (worker.cancelled.size > 0 || worker.draining) return withNews(worker, []);
        // Known already for all but its first poll here.
        const offer = worker.offer ?? (await this.#parts.fleet.offerOf(worker));
        const answer = await this.#lookAndWait(worker, offer, visit);
        if (answer !== null) return answer;
      }
      return { tasks: [], cancelled: [], drain: false };
    } finally {
      // Woken, but it did not look: somebody else should.
      visit.wakeUp?.passOn();
    }
  }

  /** Null: it was woken, or something may have changed. */
  async #lookAndWait(
    worker: KnownWorker,
    offer: WorkerOffer,
    visit: Visit,
  ): Promise<PollAnswer | null> {
    const { waiters } = this.#parts;
    const { signal, endsAtMs } = visit;
    const { waiter, take, giveWayMs, deniedMs } = this.#enter(worker, offer, visit);
    try {
      if (take.count > 0 && (visit.mustLook || waiters.shouldLook(waiter))) {
        const looked = await this.#look(worker, visit, waiter, take);
        if (looked !== 'nothing') return looked;
      }
      const leftMs = endsAtMs - performance.now();
      if (leftMs <= 0) return withNews(worker, []);
      visit.mustLook = giveWayMs > 0;
      await waiter.wait(Math.min(leftMs, deniedMs), signal);
      visit.wakeUp = waiter.takeWakeUp();
      return null;
    } finally {
      waiters.leave(waiter);
    }
  }

  /**
   * Before the look: a wake-up that comes during it must find somebody. Who may get nothing asks for
   * nothing, so that no wake-up finds it, and hands on the one that it came with.
   */
  #enter(worker: KnownWorker, offer: WorkerOffer, visit: Visit): Entered {
    const { request, sinceMs } = visit;
    const { workerId } = worker;
    const { bench } = this.#parts;
    const wanted = Math.min(request.availableCapacity, this.#parts.claim.mostAtOnce);
    const giveWayMs = wanted === 0 ? 0 : this.#giveWayMs(workerId);
    const ration = bench.ration(workerId, wanted);
    const { count, waitMs: deniedMs } = giveWayMs > 0 ? { count: 0, waitMs: giveWayMs } : ration;
    const take = takeRequest(offer, request, count);
    const load = loadOf(worker, request.availableCapacity);
    if (count === 0) visit.wakeUp?.passOn();
    const wakeUp = count === 0 ? null : visit.wakeUp;
    visit.wakeUp = null;
    const waiter = this.#parts.waiters.enter({ workerId, request: take, load, sinceMs, wakeUp });
    return { waiter, take, giveWayMs, deniedMs };
  }

  #giveWayMs(workerId: WorkerId): number {
    return this.#context.answers.isClogged ? fullWaitMs : this.#parts.giveWayMs(workerId);
  }

  /** Null: what there was could not be claimed after all. */
  async #look(
    worker: KnownWorker,
    visit: Visit,
    waiter: PollWaiter,
    take: TakeRequest,
  ): Promise<PollAnswer | null | 'nothing'> {
    const { waiters, bench } = this.#parts;
    let unused = take.count;
    bench.give(worker.workerId, unused);
    const takenMs = performance.now();
    try {
      const looked = await this.#take(take);
      waiters.answered(waiter, openingOf(looked));
      if (looked.kind !== 'taken') return 'nothing';
      // From here on a wake-up is for those who have nothing yet.
      waiters.leave(waiter);
      visit.mustLook = true;
      const answer = await this.#claim(worker, visit, looked, takenMs);
      unused -= answer?.tasks.length ?? 0;
      return answer;
    } finally {
      bench.giveBack(worker.workerId, unused);
    }
  }

  async #take(request: TakeRequest): Promise<Looked> {
    const { ready } = this.#context;
    const { queues } = this.#parts;
    if (ready.trouble() !== null) return { kind: 'wait', waitMs: troubleWaitMs };
    if (queues.isInDoubt && !(await queues.settleDoubt())) {
      return { kind: 'wait', waitMs: troubleWaitMs };
    }
    // Asked again: what is granted after the last checkpoint of a process that ends is not in it.
    this.#refuseUnlessServing();
    const taken = await ready.take(request).catch((error: unknown) => {
      if (ready.trouble() === null) throw error;
      return null;
    });
    if (taken === null) return { kind: 'wait', waitMs: troubleWaitMs };
    if (taken.kind !== 'rebuild') return taken;
    queues.doubt();
    this.#parts.rebuild();
    return { kind: 'wait', waitMs: closedWaitMs };
  }

  /** Null: Postgres refused them all or answered late, or nobody listens any more. */
  async #claim(
    worker: KnownWorker,
    { request, signal }: Visit,
    taken: TakenEntries,
    takenMs: number,
  ): Promise<PollAnswer | null> {
    const { claim, feeder, release, waiters } = this.#parts;
    // There is more than this worker asked for: whoever else waits for it should know.
    if (taken.next !== null) waiters.wakeAnywhere({ lanes: [taken.next], count: 1 });
    // Their places are free already: a window of a few is refilled while these are claimed.
    feeder.noteTaken(taken.entries);
    const start = request.prefetch !== true;
    const { tasks, over } = await claim.claim(worker.workerId, taken, start, takenMs);
    if (over.length > 0) await release(over);
    if (tasks.length === 0) return null;
    const isLate = performance.now() - takenMs >= lateMs;
    if (!isLate && !hasLeft(signal)) return withNews(worker, tasks);
    // Back they go at once, rather than after two heartbeats.
    await release(tasks);
    return null;
  }

  #refuseUnlessServing(): void {
    const reason = this.#parts.notServing();
    if (reason !== null) throw new SluiceError('unavailable', reason, { retryAfterSeconds: 1 });
  }
}

/** A poll that does not wait is made to be answered from a look of its own. */
function beginVisit(request: PollRequest, signal: AbortSignal | undefined): Visit {
  const sinceMs = performance.now();
  const waitMs = request.waitMs ?? 0;
  const endsAtMs = sinceMs + waitMs;
  return { request, sinceMs, endsAtMs, signal, mustLook: waitMs <= 0, wakeUp: null };
}

function openingOf(looked: Looked): Opening {
  return looked.kind === 'taken' && looked.next !== null ? 'now' : looked.waitMs;
}

/**
 * Share of its slots in use. The poll is fresher than the last heartbeat; but who asks for the most
 * there is to ask for may have more slots free than that.
 */
function loadOf({ capacity, load }: KnownWorker, availableCapacity: number): number {
  const inUse = Math.max(0, capacity - availableCapacity);
  return (availableCapacity >= defaultClaimBatch ? Math.min(load, inUse) : inUse) / capacity;
}

/** Asked anew after every await: the compiler would take the first answer for the last. */
function hasLeft(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function withNews(worker: KnownWorker, tasks: readonly ClaimedTask[]): PollAnswer {
  const cancelled = [...worker.cancelled];
  worker.cancelled.clear();
  return { tasks, cancelled, drain: worker.draining };
}
