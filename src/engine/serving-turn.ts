import { randomUUID } from 'node:crypto';
import { leaveServing, renewServing, takeServing } from '../store/serving.js';
import { instant, type EngineContext } from './context.js';

export interface ServingTurnOptions {
  readonly begin: () => Promise<void>;
  readonly end: () => Promise<void>;
  /** Told once each time it has to stand by, with a sentence for people. */
  readonly onStandby: (message: string) => void;
}

/**
 * The ready queue in memory belongs to one process at a time, which holds a lease row. This one
 * waits for its turn, serves while it can renew, and steps down when it can't.
 */
export class ServingTurn {
  readonly #context: EngineContext;
  readonly #options: ServingTurnOptions;
  readonly #holder = randomUUID();
  #holds = false;
  #begun = false;
  #beginning: Promise<void> = Promise.resolve();
  /** The same, without what happens when it fails. */
  #begin: Promise<void> = Promise.resolve();
  #renewedMs = 0;
  #standbySaid = false;

  constructor(context: EngineContext, options: ServingTurnOptions) {
    this.#context = context;
    this.#options = options;
  }

  isServing(): boolean {
    return this.#begun && this.holds();
  }

  /** False as soon as another process might serve, whether or not this one has noticed. */
  holds(): boolean {
    const { servingLeaseMs } = this.#context.settings;
    return this.#holds && performance.now() - this.#renewedMs < servingLeaseMs;
  }

  async tick(): Promise<number> {
    const { settings } = this.#context;
    if (this.#holds) await this.#renew();
    if (!this.#holds) await this.#take();
    return this.#holds ? settings.servingRenewMs : settings.servingRenewMs / 2;
  }

  /** Resolves when what its turn began has begun, or failed to; at once while standing by. */
  begun(): Promise<void> {
    return this.#beginning;
  }

  async leave(): Promise<void> {
    if (!this.#holds) return;
    await this.#stepDown();
    await leaveServing(this.#context.db.urgent, this.#holder);
  }

  async #take(): Promise<void> {
    const { db, settings } = this.#context;
    const beganMs = performance.now();
    const now = instant(this.#context);
    const turn = await takeServing(db.urgent, this.#holder, 'memory', settings.servingLeaseMs, now);
    if (turn.kind === 'standby') {
      this.#sayStandby(turn.mode);
      return;
    }
    this.#renewedMs = beganMs;
    this.#holds = true;
    this.#standbySaid = false;
    this.#beginBesideRenewing();
  }

  /** A rebuild of millions may take longer than the lease, which must be renewed meanwhile. */
  #beginBesideRenewing(): void {
    this.#begin = this.#options.begin();
    this.#beginning = this.#begin
      .then(() => {
        this.#begun = this.#holds;
      })
      .catch(async (error: unknown) => {
        this.#context.log.error({ err: error }, 'could not begin to serve; trying again');
        await this.leave();
      })
      .catch((error: unknown) => {
        this.#context.log.error({ err: error }, 'could not give the turn back; it will lapse');
      });
  }

  async #renew(): Promise<void> {
    const beganMs = performance.now();
    if (await renewServing(this.#context.db.urgent, this.#holder, instant(this.#context))) {
      this.#renewedMs = beganMs;
      return;
    }
    this.#context.log.error('another process took over while this one was away; standing by');
    await this.#stepDown();
  }

  async #stepDown(): Promise<void> {
    this.#holds = false;
    this.#begun = false;
    // What has not begun can't be ended: it would begin afterwards, and nobody would end it.
    await this.#begin.catch(() => undefined);
    await this.#options.end();
  }

  #sayStandby(mode: 'memory' | 'redis'): void {
    if (this.#standbySaid) return;
    this.#standbySaid = true;
    this.#options.onStandby(
      mode === 'redis'
        ? 'A server with Redis serves this database. Give this one the same REDIS_URL.'
        : 'Another process serves this database. This one stands by and takes over when it ends.',
    );
  }
}
