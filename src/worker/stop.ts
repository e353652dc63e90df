import type { TaskAbortedError } from './errors.js';

/** Tells a handler to stop. Its signal is made when somebody asks for it: most handlers never do. */
export class Stop {
  #controller: AbortController | null = null;
  #reason: TaskAbortedError | null = null;

  /** Null: it may go on. The first reason counts. */
  get reason(): TaskAbortedError | null {
    return this.#reason;
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#reason !== null) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  abort(reason: TaskAbortedError): void {
    this.#reason ??= reason;
    this.#controller?.abort(reason);
  }
}
