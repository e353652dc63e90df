import type { EngineContext } from './context.js';
import type { KnownLeader } from './serving-turn.js';

export interface LeadershipView {
  /** Whether this process leads. */
  readonly leads: boolean;
  /** Names the process that leads; null: nobody, as far as this one knows. */
  readonly leader: string | null;
  /** Since when it leads, by the clock of Postgres. */
  readonly since: Date | null;
  /** How often this process saw another leader than before. */
  readonly changes: number;
}

/** Which of the processes that share a database without Redis leads. A change is one log line. */
export class Leadership {
  readonly #context: EngineContext;
  #leader: string | null = null;
  #since: Date | null = null;
  #changes = 0;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Null: processes do not share a ready queue in memory. */
  get view(): LeadershipView | null {
    const { replicas } = this.#context;
    if (replicas === undefined) return null;
    const leads = replicas.leads;
    return { leads, leader: this.#leader, since: this.#since, changes: this.#changes };
  }

  lead(holdsLease: () => boolean): void {
    const { db, log, replicas } = this.#context;
    if (replicas === undefined) return;
    replicas.lead(holdsLease);
    this.#note(replicas.address, new Date(db.nowMs()));
    log.info({ leader: replicas.address }, 'this process leads from now on');
  }

  follow(leader: KnownLeader | null): void {
    const { log, replicas } = this.#context;
    if (replicas === undefined || leader?.holder === replicas.address) return;
    const isNew = leader !== null && leader.holder !== this.#leader;
    if (isNew) {
      this.#note(leader.holder, leader.since);
      log.info({ leader: leader.holder, since: leader.since }, 'another process leads');
    }
    replicas.follow(leader?.holder ?? null);
  }

  #note(leader: string, since: Date): void {
    if (this.#leader !== null && leader !== this.#leader) this.#changes += 1;
    this.#leader = leader;
    this.#since = since;
  }
}
