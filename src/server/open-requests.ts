import type { FastifyReply } from 'fastify';

/** Requests that wait: each ends when its client goes away, and all of them when the server stops. */
export class OpenRequests {
  readonly #open = new Set<AbortController>();
  #stopped = false;

  get stopped(): boolean {
    return this.#stopped;
  }

  signalFor(reply: FastifyReply): AbortSignal {
    const controller = new AbortController();
    this.#open.add(controller);
    reply.raw.once('close', () => {
      this.#open.delete(controller);
      controller.abort();
    });
    if (this.#stopped) controller.abort();
    return controller.signal;
  }

  stop(): void {
    this.#stopped = true;
    for (const controller of this.#open) controller.abort();
  }
}
