import { SluiceError } from '../domain/errors.js';
import { nextShedding, noShedding } from '../domain/overload.js';
import type { App } from './app-type.js';
import { callerOf } from './caller.js';
import { sendProblem } from './problem.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Some are refused before they are read while the server has more to do than it can. */
    isShed?: boolean;
  }
}

const everyMs = 50;
/** They don't all come back at once. */
const retryAfterSeconds = [1, 2, 3, 4];
/** Made once: what an error remembers of where it was made costs as much as the rest of the answer. */
const refusals = retryAfterSeconds.map(
  (seconds) =>
    new SluiceError('refused', 'This server has more to do than it can; the request was not read', {
      retryAfterSeconds: seconds,
    }),
);

/**
 * Sheds submits while they make the event loop late, so that health checks, reads and workers are
 * answered in time. Those are never refused, and neither is who may pass all ceilings.
 */
export class Overload {
  readonly #random: () => number;
  #shedding = noShedding;
  #submitsUnderWay = 0;
  #refused = 0;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** How many, since this process began. */
  get refused(): number {
    return this.#refused;
  }

  /** After it is known who calls. */
  watch(app: App): void {
    let lookedAtMs = performance.now();
    const timer = setInterval(() => {
      const nowMs = performance.now();
      this.look(nowMs - lookedAtMs);
      lookedAtMs = nowMs;
    }, everyMs);
    timer.unref();
    app.addHook('onClose', (_app, done) => {
      clearInterval(timer);
      done();
    });
    app.addHook('onRequest', (request, reply, done) => {
      if (request.routeOptions.config.isShed !== true || callerOf(request).passesCeilings) {
        done();
        return;
      }
      const chance = this.#random();
      if (chance < this.#shedding.share) {
        this.#refused += 1;
        sendProblem(refusalFor(chance / this.#shedding.share), request, reply);
        return;
      }
      this.#submitsUnderWay += 1;
      reply.raw.once('close', () => (this.#submitsUnderWay -= 1));
      done();
    });
  }

  /** As much later than it was meant to be as the event loop is late. */
  look(passedMs: number): void {
    const pressure = { lagMs: passedMs - everyMs, submitsUnderWay: this.#submitsUnderWay };
    this.#shedding = nextShedding(this.#shedding, pressure, passedMs);
  }
}

/** `chance` is in [0, 1). */
function refusalFor(chance: number): SluiceError {
  const refusal = refusals[Math.floor(chance * refusals.length)];
  if (refusal === undefined) throw new Error(`There is no refusal for ${chance}`);
  return refusal;
}
