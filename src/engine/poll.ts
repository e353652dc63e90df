import { SluiceError } from '../domain/errors.js';
import type { WorkerId } from '../domain/ids.js';
import type { ClaimedTask, PollAnswer, PollRequest } from '../protocol/api.js';
import type { TakeAnswer, TakeRequest } from '../ready/ready-queue.js';
import type { Claim } from './claim.js';
import { asRefusal, type EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import { takeRequest, type Fleet, type KnownWorker } from './fleet.js';
import type { PollWaiters } from './poll-waiters.js';

/** A wait is looked at again after this long, should a wake-up ever go astray. */
const longestWaitMs = 5_000;

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

/** A worker asks for work and waits until there is some, or news for it, or its time is over. */
export class Poll {
  readonly #context: EngineContext;
  readonly #parts: PollParts;

  constructor(context: EngineContext, parts: PollParts) {
    this.#context = context;
    this.#parts = parts;
  }

  async poll(workerId: WorkerId, request: PollRequest, signal?: AbortSignal): Promise<PollAnswer> {
    this.#refuseUnlessServing();
    const endsAtMs = performance.now() + (request.waitMs ?? 0);
    for (;;) {
      const worker = await this.#parts.fleet.get(workerId);
      const attempt = await this.#tryOnce(worker, request, signal);
      const leftMs = endsAtMs - performance.now();
      if (attempt.kind === 'answer') return attempt.answer;
      if (leftMs <= 0 || hasLeft(signal)) return answer(worker, []);
      const poll = { workerId, request: attempt.take, load: worker.load / worker.capacity };
      const waitMs = Math.min(leftMs, attempt.waitMs ?? longestWaitMs, longestWaitMs);
      const woken = await this.#parts.waiters.wait(poll, waitMs, signal);
      if (woken && hasLeft(signal)) this.#parts.waiters.wakeAll();
      this.#refuseUnlessServing();
    }
  }

  async #tryOnce(
    worker: KnownWorker,
    request: PollRequest,
    signal: AbortSignal | undefined,
  ): Promise<
    | { readonly kind: 'answer'; readonly answer: PollAnswer }
    | { readonly kind: 'wait'; readonly take: TakeRequest; readonly waitMs: number | null }
  > {
    const wanted = worker.draining ? 0 : request.availableCapacity;
    const take = takeRequest(worker, request, wanted);
    if (worker.cancelled.size > 0 || worker.draining) {
      return { kind: 'answer', answer: answer(worker, []) };
    }
    if (wanted === 0) return { kind: 'wait', take, waitMs: null };
    for (;;) {
      const taken = await this.#context.ready.take(take);
      if (taken.kind === 'wait') return { kind: 'wait', take, waitMs: taken.waitMs };
      if (taken.kind === 'rebuild') {
        this.#parts.rebuild();
        return { kind: 'wait', take, waitMs: 100 };
      }
      const tasks = await this.#claim(worker, request, taken, signal);
      if (tasks.length > 0) return { kind: 'answer', answer: answer(worker, tasks) };
    }
  }

  async #claim(
    worker: KnownWorker,
    request: PollRequest,
    taken: TakeAnswer & { kind: 'taken' },
    signal: AbortSignal | undefined,
  ): Promise<readonly ClaimedTask[]> {
    const { claim, feeder, release, waiters } = this.#parts;
    // There is more than this worker asked for: whoever else waits for it should know.
    if (taken.next !== null) waiters.wake({ lanes: [taken.next], count: 1 });
    const tasks = await claim
      .claim(worker.workerId, taken.entries, request.prefetch !== true)
      .catch((error: unknown) => {
        throw asRefusal(error);
      });
    feeder.noteTaken(taken.entries);
    if (!hasLeft(signal)) return tasks;
    // Nobody listens any more: back they go, rather than after two heartbeats.
    await release(tasks);
    return [];
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

function answer(worker: KnownWorker, tasks: readonly ClaimedTask[]): PollAnswer {
  const cancelled = [...worker.cancelled];
  worker.cancelled.clear();
  return { tasks, cancelled, drain: worker.draining };
}
