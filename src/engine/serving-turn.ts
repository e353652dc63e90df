import { randomUUID } from 'node:crypto';
import {
  leaveServing,
  renewServing,
  takeServing,
  type ReadyQueueMode,
  type SeenTurn,
  type ServingAnswer,
} from '../store/serving.js';
import { findLeader, type Leader } from '../store/leader.js';
import { instant, type EngineContext, type EngineMode } from './context.js';
import type { Role } from './serving.js';

/** Looks in one renewal interval. */
const looksWhenOverdue = 8;

export interface ServingTurnOptions {
  readonly begin: () => Promise<void>;
  /** `isLeaving`: by its own will, and its turn is still good. Asked anew: to end may take longer. */
  readonly end: (isLeaving: () => boolean) => Promise<void>;
  /** At every look that finds the lease in other hands; null: nobody holds it. */
  readonly onOther: (leader: KnownLeader | null) => void;
}

export type KnownLeader = Pick<Leader, 'holder' | 'since'>;

/**
 * The ready queue in memory belongs to one process at a time, the leader, which holds a lease row. This one
 * waits for its turn, leads while it can renew, and steps down when it can't. With Redis all hold it
 * at once, and the row keeps out those who would lead from memory.
 */
export class ServingTurn {
  readonly #context: EngineContext;
  readonly #options: ServingTurnOptions;
  readonly #holder: string;
  #holds = false;
  #begun = false;
  #beginning: Promise<void> = Promise.resolve();
  /** The same, without what happens when it fails. */
  #begin: Promise<void> = Promise.resolve();
  #renewedMs = 0;
  /** The row of the process that serves, as this one saw it last, since when, and whether it ever changed. */
  #seen: { renewedAt: Date; sinceMs: number; hasChanged: boolean } | null = null;
  #mixture: string | null = null;
  #mayTake: boolean;
  /** Why it could not begin when it was its turn last. */
  #failure: string | null = null;

  constructor(context: EngineContext, role: Role, options: ServingTurnOptions) {
    this.#context = context;
    this.#options = options;
    this.#holder = context.replicas?.address ?? randomUUID();
    this.#mayTake = role === 'serve';
  }

  /** Null while it serves; else why not, for people. */
  notServing(): string | null {
    if (this.#begun && this.holds()) return null;
    if (this.#mixture !== null) return this.#mixture;
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
    if (!this.#holds) await (this.#mayTake ? this.#take() : this.#look());
    if (this.#holds) return settings.servingRenewMs;
    return settings.servingRenewMs / (this.#isOverdue() ? looksWhenOverdue : 2);
  }

  /** The lease is another process's from now on; this one only looks whose. */
  takeNoMore(): void {
    this.#mayTake = false;
  }

  /** Resolves when what its turn began has begun, or failed to; at once while standing by. */
  begun(): Promise<void> {
    return this.#beginning;
  }

  async leave(): Promise<void> {
    if (!this.#holds) return;
    await this.#stepDown(this.holds());
    await leaveServing(this.#context.db.urgent, this.#holder);
    this.#context.replicas?.resign();
    this.#context.replicas?.follow(null);
  }

  async #look(): Promise<void> {
    const leader = await findLeader(this.#context.db.urgent);
    this.#noteMixture(leader?.mode ?? null);
    this.#options.onOther(leader);
  }

  async #take(): Promise<void> {
    const beganMs = performance.now();
    const turn = await this.#ask();
    if (turn.kind === 'standby') {
      this.#see(turn.renewedAt);
      this.#noteMixture(turn.mode);
      this.#options.onOther(turn);
      return;
    }
    this.#seen = null;
    this.#renewedMs = beganMs;
    this.#holds = true;
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
    const { servingLeaseMs } = settings;
    const row = rowMode(mode);
    return takeServing(db.urgent, this.#holder, row, servingLeaseMs, now, shared, seen);
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
    this.#context.log.error('another process took over while this one was away');
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

  #noteMixture(theirs: ReadyQueueMode | null): void {
    this.#mixture = theirs === null ? null : whyMixture(rowMode(this.#context.mode), theirs);
  }

  /** The leader renews later than it should: it may be gone. */
  #isOverdue(): boolean {
    const { servingRenewMs } = this.#context.settings;
    return this.#seen !== null && this.#steadyMs() - this.#seen.sinceMs > 1.5 * servingRenewMs;
  }
}

/** What the row says: replicas keep their ready queue in the memory of the leader. */
function rowMode(mode: EngineMode): ReadyQueueMode {
  return mode === 'redis' ? 'redis' : 'memory';
}

/** Null: they serve from memory, as this one would. With Redis only those of another one are refused. */
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
