import { SluiceError } from '../domain/errors.js';
import type { WorkerId } from '../domain/ids.js';
import type { ClaimedTask, PollAnswer, PollRequest } from '../protocol/api.js';
import type { TakeAnswer, TakeRequest, Wake } from '../ready/ready-queue.js';
import type { Claim } from './claim.js';
import type { EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import { takeRequest, type Fleet, type KnownWorker } from './fleet.js';
import type { PollWaiters } from './poll-waiters.js';

/** A wait is looked at again after this long, should a wake-up ever go astray. */
const longestWaitMs = 5_000;
const rebuildWaitMs = 100;

export interface PollParts {
  readonly fleet: Fleet;
  readonly claim: Claim;
  readonly feeder: Feeder;
  readonly waiters: PollWaiters;
  /** Null while this process serves; else why it does not. */
  readonly notServing: () => string | null;
  readonly release: (tasks: readonly ClaimedTask[]) => Promise<unknown>;
  /** The ready queue lost its contents. */
  readonly rebuild: () => void;
}

type Looked =
  | { readonly kind: 'answer'; readonly answer: PollAnswer }
  | { readonly kind: 'again'; readonly wokenBy: Wake | null };

const lookAgain: Looked = { kind: 'again', wokenBy: null };

/** A worker asks for work and waits until there is some, or news for it, or its time is over. */
export class Poll {
  readonly #context: EngineContext;
  readonly #parts: PollParts;

  constructor(context: EngineContext, parts: PollParts) {
    this.#context = context;
    this.#parts = parts;
  }

  async poll(workerId: WorkerId, request: PollRequest, signal?: AbortSignal): Promise<PollAnswer> {
    const { fleet, waiters } = this.#parts;
    const endsAtMs = performance.now() + (request.waitMs ?? 0);
    let wokenBy: Wake | null = null;
    try {
      while (!hasLeft(signal)) {
        this.#refuseUnlessServing();
        const worker = await fleet.get(workerId);
        if (worker.cancelled.size > 0 || worker.draining) return withNews(worker, []);
        wokenBy = null;
        const answer = await this.#lookAndWait(worker, request, endsAtMs, signal);
        if (answer.kind === 'answer') return answer.answer;
        wokenBy = answer.wokenBy;
      }
      return { tasks: [], cancelled: [], drain: false };
    } finally {
      // Woken, but it did not look: somebody else should.
      if (wokenBy !== null) waiters.wake(wokenBy);
    }
  }

  /** `again`: it was woken, or something may have changed. */
  async #lookAndWait(
    worker: KnownWorker,
    request: PollRequest,
    endsAtMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Looked> {
    const { waiters } = this.#parts;
    const { workerId, load, capacity } = worker;
    const take = takeRequest(worker, request, request.availableCapacity);
    const waiter = waiters.enter({ workerId, request: take, load: load / capacity });
    try {
      const taken = await this.#take(take);
      if (taken.kind === 'taken') {
        // From here on a wake-up is for those who have nothing yet.
        waiters.leave(waiter);
        return await this.#claim(worker, request, taken, signal);
      }
      const leftMs = endsAtMs - performance.now();
      if (leftMs <= 0) return { kind: 'answer', answer: withNews(worker, []) };
      await waiter.wait(Math.min(leftMs, taken.waitMs ?? longestWaitMs, longestWaitMs), signal);
      return { kind: 'again', wokenBy: waiter.takeWake() };
    } finally {
      waiters.leave(waiter);
    }
  }

  async #take(request: TakeRequest): Promise<Exclude<TakeAnswer, { kind: 'rebuild' }>> {
    if (request.count === 0) return { kind: 'wait', waitMs: null };
    const taken = await this.#context.ready.take(request);
    if (taken.kind !== 'rebuild') return taken;
    this.#parts.rebuild();
    return { kind: 'wait', waitMs: rebuildWaitMs };
  }

  /** `again`: Postgres refused them all, or nobody listens any more. */
  async #claim(
    worker: KnownWorker,
    { prefetch }: PollRequest,
    { entries, next }: TakeAnswer & { kind: 'taken' },
    signal: AbortSignal | undefined,
  ): Promise<Looked> {
    const { claim, feeder, release, waiters } = this.#parts;
    // There is more than this worker asked for: whoever else waits for it should know.
    if (next !== null) waiters.wake({ lanes: [next], count: 1 });
    const tasks = await claim.claim(worker.workerId, entries, prefetch !== true);
    feeder.noteTaken(entries);
    if (tasks.length === 0) return lookAgain;
    if (!hasLeft(signal)) return { kind: 'answer', answer: withNews(worker, tasks) };
    // Back they go at once, rather than after two heartbeats.
    await release(tasks);
    return lookAgain;
  }

  #refuseUnlessServing(): void {
    const reason = this.#parts.notServing();
    if (reason !== null) throw new SluiceError('standby', reason, { retryAfterSeconds: 1 });
  }
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
