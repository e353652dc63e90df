import type { HeartbeatAnswer } from '../protocol/workers-api.js';
import type { Logger } from '../runtime/log.js';
import { Loop } from '../runtime/loop.js';
import { asLogged, isKeyRefused, retryDelayMs } from './backoff.js';
import { within } from './within.js';

export interface HeartbeatOptions {
  /** Read before every beat: a new registration may bring new terms. */
  readonly terms: () => { readonly heartbeatIntervalMs: number; readonly leaseMs: number };
  readonly send: () => Promise<HeartbeatAnswer>;
  readonly onAnswer: (answer: HeartbeatAnswer) => void;
  /** No beat has arrived for so long that the leases are about to lapse. */
  readonly onSilence: () => void;
  readonly onFailure: () => void;
  readonly log: Logger;
}

// Handlers need a moment to let go before somebody else may begin.
const silenceShareOfLease = 0.9;

/** Tells the server what this worker holds, and notices when it can't any more. */
export class HeartbeatLoop {
  readonly #options: HeartbeatOptions;
  readonly #loop: Loop;
  #silence: NodeJS.Timeout | undefined;
  #failures = 0;
  #heardAtMs = performance.now();

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#loop = new Loop({
      tick: () => this.#beat(),
      onError: (error) => options.log.error({ err: error }, 'a heartbeat went wrong'),
    });
  }

  start(): void {
    this.#heardAt(performance.now());
    this.#loop.start();
  }

  /** There is news for the server that can't wait for the next beat. */
  wake(): void {
    this.#loop.wake();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    clearTimeout(this.#silence);
  }

  async #beat(): Promise<number> {
    const { terms, send, onAnswer, log } = this.#options;
    const { heartbeatIntervalMs } = terms();
    const sentAt = performance.now();
    try {
      // A beat that hangs must not keep the next from being sent.
      const answer = await within(heartbeatIntervalMs, send());
      this.#failures = 0;
      this.#heardAt(sentAt);
      onAnswer(answer);
      return heartbeatIntervalMs;
    } catch (error) {
      if (!isKeyRefused(error)) log.warn(asLogged(error), 'a heartbeat did not arrive');
      this.#failures += 1;
      this.#options.onFailure();
      return Math.min(heartbeatIntervalMs, retryDelayMs(error, this.#failures));
    }
  }

  /** Heartbeats in a row that were not acknowledged. */
  get failures(): number {
    return this.#failures;
  }

  /** Since the last acknowledged heartbeat was sent. */
  get sinceHeardMs(): number {
    return performance.now() - this.#heardAtMs;
  }

  /** How long the leases live at least if no further beat arrives. */
  get leaseLeftMs(): number {
    return this.#heardAtMs + this.#options.terms().leaseMs - performance.now();
  }

  /** The server counts the lease from when a beat reaches it: no sooner than it was sent. */
  #heardAt(sentAt: number): void {
    this.#heardAtMs = sentAt;
    this.#awaitSilence(sentAt);
  }

  #awaitSilence(sentAt: number): void {
    clearTimeout(this.#silence);
    const dueAt = sentAt + this.#options.terms().leaseMs * silenceShareOfLease;
    this.#silence = setTimeout(() => {
      this.#options.onSilence();
      // Polls may still get through, and bring tasks whose leases will lapse as well.
      this.#awaitSilence(performance.now());
    }, dueAt - performance.now());
  }
}
