import type { FastifyReply } from 'fastify';
import { SluiceError } from '../domain/errors.js';
import { unauthorized } from './auth.js';
import type { KeyRing } from './ports.js';

/**
 * Requests that wait: each ends when its client goes away or its key ends, and all of them when the
 * server begins to drain and when it stops.
 */
export class OpenRequests {
  readonly #keys: KeyRing;
  readonly #open = new Map<AbortController, string | null>();
  readonly #stopListening: () => void;
  #stopped = false;

  constructor(keys: KeyRing) {
    this.#keys = keys;
    this.#stopListening = keys.onEnded(() => {
      for (const [controller, keyId] of this.#open) this.#endUnlessGood(controller, keyId);
    });
  }

  /** Those that wait now; later ones may wait again. */
  endAll(): void {
    for (const controller of this.#open.keys()) controller.abort();
  }

  signalFor(reply: FastifyReply): AbortSignal {
    const controller = new AbortController();
    // A client may leave before its request waits: while its key or its task is looked up.
    if (reply.raw.closed || reply.raw.destroyed) {
      controller.abort();
      return controller.signal;
    }
    const keyId = reply.request.holder?.keyId ?? null;
    this.#open.set(controller, keyId);
    reply.raw.once('close', () => {
      this.#open.delete(controller);
      controller.abort();
    });
    if (this.#stopped) controller.abort();
    this.#endUnlessGood(controller, keyId);
    return controller.signal;
  }

  stop(): void {
    this.#stopped = true;
    this.#stopListening();
    this.endAll();
  }

  #endUnlessGood(controller: AbortController, keyId: string | null): void {
    if (!this.#keys.isGood(keyId)) controller.abort(unauthorized());
  }
}

/** Whoever waited and has nothing yet learns that its key ended meanwhile. */
export function refuseEnded(signal: AbortSignal | undefined): void {
  if (signal?.reason instanceof SluiceError) throw signal.reason;
}
