import { setTimeout as delay } from 'node:timers/promises';
import { SluiceError } from '../../domain/errors.js';
import { restMs } from '../../domain/scaling.js';
import type { Scaler } from '../../engine/scaler.js';
import type { Logger } from '../../runtime/log.js';
import { Loop } from '../../runtime/loop.js';
import { DatabaseAwayError } from '../../store/database.js';
import type { Provisioner } from './provisioner.js';

export interface AskingOptions {
  readonly scaler: Scaler;
  readonly provisioner: Provisioner;
  readonly log: Logger;
  /** After this a provisioner that does not answer is cut off. */
  readonly patienceMs?: number;
  /** In [0, 1). */
  readonly random?: () => number;
}

/**
 * Asks for workers once per interval, beside everything else: whatever the provisioner does, neither
 * a submit nor a poll waits for it. Of several servers one asks.
 */
export class Asking {
  readonly #options: AskingOptions;
  readonly #loop: Loop;
  readonly #stopping = new AbortController();
  #failures = 0;
  #failure: string | null = null;
  #restsUntilMs = 0;

  constructor(options: AskingOptions) {
    this.#options = options;
    this.#loop = new Loop({
      tick: () => this.tick(),
      onError: (error) => this.#noteError(error),
      errorDelayMs: options.scaler.intervalMs,
    });
  }

  start(): void {
    this.#loop.start();
  }

  /** Resolves when nobody is asked any more, and what was started has been let go. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop.stop();
    await this.#options.provisioner.stop();
    await this.#options.scaler.leaveTurn().catch((error: unknown) => this.#noteError(error));
  }

  /** Null while it goes well. */
  get failure(): string | null {
    return this.#failure;
  }

  async tick(): Promise<number> {
    const { scaler, provisioner } = this.#options;
    if (!(await scaler.takeTurn(provisioner.kind))) {
      await this.#stepAside();
    } else if (performance.now() >= this.#restsUntilMs) {
      await this.#ask();
    }
    return scaler.intervalMs;
  }

  async #stepAside(): Promise<void> {
    this.#failures = 0;
    this.#failure = null;
    await this.#options.provisioner.stop();
  }

  async #ask(): Promise<void> {
    const { scaler, provisioner } = this.#options;
    const failure = await this.#request();
    if (this.#stopping.signal.aborted) return;
    this.#heed(failure);
    if (provisioner.taskTypes !== null) scaler.learn(provisioner.taskTypes);
    await scaler.noteAsked(failure);
  }

  /** Null: it went well. */
  async #request(): Promise<string | null> {
    const { scaler, provisioner, patienceMs = 10_000 } = this.#options;
    const wish = await scaler.wish();
    const over = new AbortController();
    const late = delay(patienceMs, undefined, { signal: over.signal }).then(() => {
      throw new Error(
        `The ${provisioner.kind} provisioner did not answer in ${patienceMs / 1000} s.`,
      );
    });
    late.catch(() => undefined);
    try {
      const signal = AbortSignal.any([over.signal, this.#stopping.signal]);
      await Promise.race([provisioner.request(wish, signal), late, untilAborted(signal)]);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      over.abort();
    }
  }

  /** Logged when it changes, not every time. */
  #heed(failure: string | null): void {
    const { scaler, provisioner, log, random = Math.random } = this.#options;
    const { kind } = provisioner;
    if (failure !== null && failure !== this.#failure) {
      log.warn({ provisioner: kind, error: failure }, 'could not ask for workers; trying again');
    } else if (failure === null && this.#failure !== null) {
      log.info({ provisioner: kind }, 'asking for workers works again');
    }
    this.#failure = failure;
    this.#failures = failure === null ? 0 : this.#failures + 1;
    const rest = failure === null ? 0 : restMs(this.#failures, scaler.intervalMs, random());
    this.#restsUntilMs = performance.now() + rest;
  }

  /** That Postgres or Redis is away is said elsewhere; when they are back, it goes on. */
  #noteError(error: unknown): void {
    if (error instanceof DatabaseAwayError || error instanceof SluiceError) return;
    this.#options.log.error({ err: error }, 'asking for workers failed; trying again');
  }
}

/** Of one request, not of the server: a listener must not stay for each that was made. */
function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
