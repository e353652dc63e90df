import { randomUUID } from 'node:crypto';
import {
  leaveServing,
  renewServing,
  takeServing,
  type ReadyQueueMode,
  type SeenTurn,
  type ServingAnswer,
} from '../store/serving.js';
import { instant, type EngineContext } from './context.js';

export interface ServingTurnOptions {
  readonly begin: () => Promise<void>;
  /** `isLeaving`: by its own will, and its turn is still good. Asked anew: to end may take longer. */
  readonly end: (isLeaving: () => boolean) => Promise<void>;
  /** Told once each time it has to stand by, with a sentence for people. */
  readonly onStandby: (message: string) => void;
}

/**
 * The ready queue in memory belongs to one process at a time, which holds a lease row. This one
 * waits for its turn, serves while it can renew, and steps down when it can't. With Redis all serve
 * at once, and the row keeps out those who would serve from memory.
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
  /** The row of the process that serves, as this one saw it last, since when, and whether it ever changed. */
  #seen: { renewedAt: Date; sinceMs: number; hasChanged: boolean } | null = null;
  #standbySaid = false;
  #mixture: string | null = null;
  /** Why it could not begin when it was its turn last. */
  #failure: string | null = null;

  constructor(context: EngineContext, options: ServingTurnOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Null while it serves; else why not, for people. */
  notServing(): string | null {
    if (this.#begun && this.holds()) return null;
    if (this.#standbySaid) return 'This process stands by; another one serves.';
    if (this.#failure !== null) return `This process could not begin to serve: ${this.#failure}`;
    return this.#holds && !this.#begun
      ? 'This process is about to serve.'
      : 'This process waits for its turn to serve.';
  }

  /** False as soon as another process might serve, whether or not this one has noticed. */
  holds(): boolean {
    return this.#holds && this.#isRecent();
  }

  /** Not null: it will never be its turn, since the others keep their ready queue elsewhere. */
  get mixture(): string | null {
    return this.#mixture;
  }

  /** The first look. The lease of a server of the other kind that has ended may still have to lapse. */
  async first(): Promise<void> {
    const { servingLeaseMs, servingRenewMs } = this.#context.settings;
    const endsAtMs = performance.now() + servingLeaseMs + servingRenewMs;
    await this.tick();
    while (this.#mixture !== null && performance.now() < endsAtMs) {
      await new Promise((resolve) => setTimeout(resolve, servingRenewMs / 2));
      await this.tick();
    }
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
    await this.#stepDown(this.holds());
    await leaveServing(this.#context.db.urgent, this.#holder);
  }

  async #take(): Promise<void> {
    const beganMs = performance.now();
    const turn = await this.#ask();
    if (turn.kind === 'standby') {
      this.#see(turn.renewedAt);
      this.#sayStandby(turn.mode);
      return;
    }
    this.#seen = null;
    this.#renewedMs = beganMs;
    this.#holds = true;
    this.#standbySaid = false;
    this.#mixture = null;
    this.#beginBesideRenewing();
  }

  /** A rebuild of millions may take longer than the lease, which must be renewed meanwhile. */
  #beginBesideRenewing(): void {
    this.#begin = this.#options.begin();
    this.#beginning = this.#begin
      .then(() => {
        this.#begun = this.#holds;
        this.#failure = null;
      })
      .catch(async (error: unknown) => {
        this.#failure = error instanceof Error ? error.message : String(error);
        this.#context.log.error({ err: error }, 'could not begin to serve; trying again');
        await this.leave();
      })
      .catch((error: unknown) => {
        this.#context.log.error({ err: error }, 'could not give the turn back; it will lapse');
      });
  }

  async #ask(): Promise<ServingAnswer> {
    const { db, settings, mode } = this.#context;
    const shared = {
      place: (await this.#context.place?.()) ?? null,
      isServing: this.#holds,
    };
    const now = instant(this.#context);
    const seen = this.#judgeSeen();
    return takeServing(db.urgent, this.#holder, mode, settings.servingLeaseMs, now, shared, seen);
  }

  #see(renewedAt: Date): void {
    const isSame = this.#seen?.renewedAt.getTime() === renewedAt.getTime();
    if (isSame) return;
    this.#seen = { renewedAt, sinceMs: this.#steadyMs(), hasChanged: this.#seen !== null };
  }

  /** Null: this process has not looked for long enough, and the clock of Postgres decides. */
  #judgeSeen(): SeenTurn | null {
    if (this.#seen === null) return null;
    const { servingLeaseMs, servingRenewMs } = this.#context.settings;
    const { renewedAt, sinceMs, hasChanged } = this.#seen;
    const forMs = this.#steadyMs() - sinceMs;
    if (forMs >= servingLeaseMs) return { state: 'gone', renewedAt };
    const isAlive = hasChanged && forMs < servingLeaseMs - servingRenewMs;
    return isAlive ? { state: 'alive', renewedAt } : null;
  }

  #steadyMs(): number {
    return this.#context.clock?.nowMs() ?? performance.now();
  }

  async #isRenewed(): Promise<boolean> {
    const { db, mode } = this.#context;
    if (mode === 'redis') return (await this.#ask()).kind === 'serving';
    return renewServing(db.urgent, this.#holder, instant(this.#context));
  }

  async #renew(): Promise<void> {
    const beganMs = performance.now();
    if (await this.#isRenewed()) {
      this.#renewedMs = beganMs;
      return;
    }
    this.#context.log.error('another process took over while this one was away; standing by');
    await this.#stepDown(false);
  }

  #isRecent(): boolean {
    return performance.now() - this.#renewedMs < this.#context.settings.servingLeaseMs;
  }

  async #stepDown(isLeaving: boolean): Promise<void> {
    this.#holds = false;
    this.#begun = false;
    // What has not begun can't be ended: it would begin afterwards, and nobody would end it.
    await this.#begin.catch(() => undefined);
    await this.#options.end(() => isLeaving && this.#isRecent());
  }

  #sayStandby(theirs: ReadyQueueMode): void {
    this.#mixture = whyMixture(this.#context.mode, theirs);
    if (this.#standbySaid) return;
    this.#standbySaid = true;
    this.#options.onStandby(
      this.#mixture ??
        'Another process serves this database. This one stands by and takes over when it ends.',
    );
  }
}

/** Null: they serve from memory, as this one would. With Redis only those of another one stand by. */
function whyMixture(ours: ReadyQueueMode, theirs: ReadyQueueMode): string | null {
  if (ours === 'memory' && theirs === 'memory') return null;
  if (ours === 'redis' && theirs === 'redis') {
    return 'Servers with another Redis serve this database. Give this one the same REDIS_URL.';
  }
  return theirs === 'redis'
    ? 'Servers with Redis serve this database. Give this one the same REDIS_URL.'
    : 'A server without Redis serves this database. Give it the same REDIS_URL and start it again, ' +
        'or start this one without REDIS_URL.';
}
