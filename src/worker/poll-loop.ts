import { setMaxListeners } from 'node:events';
import type { WorkerId } from '../domain/ids.js';
import type { PollAnswer } from '../protocol/workers-api.js';
import type { Logger } from '../runtime/log.js';
import { Loop } from '../runtime/loop.js';
import { asLogged, isKeyRefused, pause, retryDelayMs } from './backoff.js';
import type { Session } from './session.js';
import type { Slots } from './slots.js';

/** With the id that it was asked under. */
export type Polled = PollAnswer & { readonly workerId: WorkerId };

export interface PollOptions {
  readonly session: Session;
  readonly slots: Slots;
  readonly onAnswer: (answer: Polled) => void;
  readonly log: Logger;
}

// An answer that is this much overdue is not coming: the connection is dead without saying so.
const overdueMs = 10_000;
const drainingNewsMs = 500;
const lastWaitMs = 2_000;

/** Polls one after the other until stopped; after a failure it waits longer each time. */
export abstract class PollLoop {
  protected readonly options: PollOptions;
  protected readonly stopping = new AbortController();
  readonly #loop: Loop;
  #failures = 0;

  constructor(options: PollOptions) {
    this.options = options;
    // As many listeners as polls are under way.
    setMaxListeners(0, this.stopping.signal);
    this.#loop = new Loop({
      tick: () => this.#pollUntilFailure(),
      onError: (error) => options.log.error({ err: error }, 'polling went wrong'),
    });
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.#loop.stop();
  }

  get isFailing(): boolean {
    return this.#failures > 0;
  }

  protected abstract pollOnce(): Promise<void>;

  protected get longWaitMs(): number {
    return this.options.session.terms.pollWaitSeconds * 1000;
  }

  protected async poll(availableCapacity: number, waitMs: number): Promise<Polled> {
    const { session } = this.options;
    // Not AbortSignal.any: on Node 20 a signal that lives as long as the worker would keep a trace
    // of every poll.
    const cutting = new AbortController();
    const cut = () => cutting.abort();
    const overdue = setTimeout(cut, waitMs + overdueMs);
    // One that does not wait is answered soon: cut short at once, its tasks would be missed later.
    let lastWait: NodeJS.Timeout | undefined;
    const cutSoon = () => {
      lastWait = setTimeout(cut, waitMs > 0 ? 0 : lastWaitMs);
    };
    this.stopping.signal.addEventListener('abort', cutSoon, { once: true });
    try {
      return await session.call(async (workerId) => {
        const request = { availableCapacity, waitMs };
        return { ...(await session.api.poll(workerId, request, cutting.signal)), workerId };
      });
    } finally {
      clearTimeout(overdue);
      clearTimeout(lastWait);
      this.stopping.signal.removeEventListener('abort', cutSoon);
    }
  }

  async #pollUntilFailure(): Promise<number> {
    try {
      while (!this.stopping.signal.aborted) {
        await this.pollOnce();
        this.#failures = 0;
      }
      return 0;
    } catch (error) {
      if (this.stopping.signal.aborted) return 0;
      if (!isKeyRefused(error)) {
        this.options.log.warn(asLogged(error), 'a poll failed; trying again');
      }
      this.#failures += 1;
      return retryDelayMs(error, this.#failures);
    }
  }
}

/**
 * While no tasks are asked for, nobody would hear of a cancellation before the next heartbeat: a poll
 * for nothing but news stays open then. It is left to end by itself when a slot falls free, since
 * aborting a request costs its connection, which at full load would be one for every task.
 */
export class NewsLoop extends PollLoop {
  readonly #atOnce = new AbortController();

  /** No claims any more: news come through here alone, full or not. */
  drain(): void {
    this.#atOnce.abort();
  }

  override async stop(): Promise<void> {
    this.#atOnce.abort();
    await super.stop();
  }

  protected override async pollOnce(): Promise<void> {
    const { slots, onAnswer } = this.options;
    const { signal } = this.stopping;
    await slots.whenShut(this.#atOnce.signal);
    if (signal.aborted) return;
    const answer = await this.poll(0, this.longWaitMs);
    onAnswer(answer);
    // The server does not keep a draining worker waiting.
    if (answer.drain) await pause(drainingNewsMs, signal);
  }
}
