import { SluiceError } from '../domain/errors.js';
import type { WorkerId } from '../domain/ids.js';
import type { Registered, Registration, WorkerApi } from '../protocol/workers-api.js';
import type { Logger } from '../runtime/log.js';
import { asLogged, isAway, isKeyRefused, pause, retryDelayMs } from './backoff.js';

export interface SessionOptions {
  readonly api: WorkerApi;
  readonly registration: Registration;
  readonly log: Logger;
  /** At every call that fails from the first refusal of its key until a call succeeds. */
  readonly onKeyRefused: (refusal: SluiceError) => void;
  /** What is held was claimed under a former id. */
  readonly onRegisteredAgain: () => void;
}

/**
 * The worker's standing with the server: its id and the terms it was given. A server that does not
 * know the id (any more) gives a new one, under which the leases still held stay good.
 */
export class Session {
  readonly api: WorkerApi;
  readonly #registration: Registration;
  readonly #log: Logger;
  #registered: Registered | null = null;
  #registering: Promise<void> | null = null;
  #refusal: SluiceError | null = null;
  #refusedAtMs = 0;
  readonly #onKeyRefused: (refusal: SluiceError) => void;
  readonly #onRegisteredAgain: () => void;

  constructor({ api, registration, log, onKeyRefused, onRegisteredAgain }: SessionOptions) {
    this.api = api;
    this.#registration = registration;
    this.#log = log;
    this.#onKeyRefused = onKeyRefused;
    this.#onRegisteredAgain = onRegisteredAgain;
  }

  get terms(): Registered {
    if (this.#registered === null) throw new Error('The worker has not registered yet');
    return this.#registered;
  }

  get isOpen(): boolean {
    return this.#registered !== null;
  }

  /** Waits for a server that is away; rejects when one refuses. Gives up when the signal fires. */
  async open(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted && this.#registered === null; failures += 1) {
      try {
        this.#registered = await this.api.register(this.#registration);
        for (const note of this.#registered.notes ?? []) this.#log.warn(note);
      } catch (error) {
        if (!isAway(error)) throw error;
        this.#log.warn(asLogged(error), 'the server is away; trying again');
        await pause(retryDelayMs(error, failures), signal);
      }
    }
  }

  /** While the server refuses the key, every failure is thrown as that refusal. */
  async call<Answer>(send: (workerId: WorkerId) => Promise<Answer>): Promise<Answer> {
    const begunAtMs = performance.now();
    try {
      const answer = await this.#callAs(send);
      if (this.#refusal !== null) this.#noteAccepted(begunAtMs);
      return answer;
    } catch (error) {
      if (isKeyRefused(error)) {
        this.#refusal = error;
        this.#refusedAtMs = performance.now();
      }
      if (this.#refusal === null) throw error;
      this.#onKeyRefused(this.#refusal);
      throw this.#refusal;
    }
  }

  async #callAs<Answer>(send: (workerId: WorkerId) => Promise<Answer>): Promise<Answer> {
    const { workerId } = this.terms;
    try {
      return await send(workerId);
    } catch (error) {
      if (!(error instanceof SluiceError && error.code === 'worker_unknown')) throw error;
      await this.#registerAgain(workerId);
      return send(this.terms.workerId);
    }
  }

  /** A call that was under way when the key was refused says nothing about the key. */
  #noteAccepted(begunAtMs: number): void {
    if (begunAtMs <= this.#refusedAtMs) return;
    this.#refusal = null;
    this.#log.warn('the server accepts the API key of this worker again');
  }

  /** Once, however many calls find out at the same time. */
  async #registerAgain(unknownId: WorkerId): Promise<void> {
    if (this.terms.workerId !== unknownId) return;
    this.#registering ??= this.api
      .register(this.#registration)
      .then((registered) => {
        this.#registered = registered;
        this.#onRegisteredAgain();
        this.#log.info({ worker_id: registered.workerId, was: unknownId }, 'registered again');
      })
      .finally(() => {
        this.#registering = null;
      });
    await this.#registering;
  }
}
