import { SluiceError } from '../domain/errors.js';
import { isLate, nextShedding, noShedding } from '../domain/overload.js';
import type { App } from './app-type.js';
import { callerOf } from './caller.js';
import type { Lobby } from './lobby.js';
import { sendProblem } from './problem.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Some are refused before they are read while the server has more to do than it can. */
    isShed?: boolean;
  }
}

/** They don't all come back at once. */
const retryAfterSeconds = [1, 2, 3, 4];
/** Made once: what an error remembers of where it was made costs as much as the rest of the answer. */
const refusals = retryAfterSeconds.map(
  (seconds) =>
    new SluiceError('refused', 'This server has more to do than it can; the request was not read', {
      retryAfterSeconds: seconds,
    }),
);

export interface OverloadOptions {
  /** Told of each submit that is refused. */
  readonly onRefused?: () => void;
  readonly random?: () => number;
  readonly nowMs?: () => number;
}

/**
 * Sheds submits that waited too long in the lobby, while all of them do, so that workers are answered and
 * what was accepted goes on. Reads are never refused, and neither is who may pass all ceilings.
 */
export class Overload {
  readonly #options: OverloadOptions;
  #shedding = noShedding;

  constructor(options: OverloadOptions = {}) {
    this.#options = options;
  }

  /** After it is known who calls. */
  watch(app: App, lobby: Pick<Lobby, 'waitedMs'>): void {
    const { random = Math.random, nowMs = () => performance.now(), onRefused } = this.#options;
    app.addHook('onRequest', (request, reply, done) => {
      if (request.routeOptions.config.isShed !== true) {
        done();
        return;
      }
      const waitedMs = lobby.waitedMs(request.raw);
      this.#shedding = nextShedding(this.#shedding, waitedMs, nowMs());
      if (!this.#shedding.isOn || !isLate(waitedMs) || callerOf(request).passesCeilings) {
        done();
        return;
      }
      onRefused?.();
      sendProblem(refusalFor(random()), request, reply);
    });
  }
}

/** `chance` is in [0, 1). */
function refusalFor(chance: number): SluiceError {
  const refusal = refusals[Math.floor(chance * refusals.length)];
  if (refusal === undefined) throw new Error(`There is no refusal for ${chance}`);
  return refusal;
}
