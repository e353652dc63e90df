import { isLeased } from '../domain/task-state.js';
import type { Explanation } from '../protocol/tasks-api.js';
import { walkQueued } from '../store/walk-line.js';
import { Cached } from './cached.js';
import { instant, type EngineContext } from './context.js';
import type { Explain } from './explain.js';

/** Each question is asked of Postgres once in so long, however many callers ask it. */
const freshForMs = 1_000;
const stuckAfterMs = 60_000;
const maxLookedAt = 20;

/** Whether this process can serve, and whether it does. Neither question changes anything. */
export class Health {
  readonly #context: EngineContext;
  readonly #explain: Explain;
  readonly #trouble: Cached<string | null>;
  readonly #stuck: Cached<Explanation | null>;
  #lastClaimMs = performance.now();

  constructor(context: EngineContext, explain: Explain) {
    this.#context = context;
    this.#explain = explain;
    this.#trouble = new Cached(freshForMs, () => this.#findTrouble(), { costShare: 0 });
    this.#stuck = new Cached(freshForMs, () => this.#findStuck());
    context.events.subscribe(({ from, to }) => {
      if (from === 'queued' && isLeased(to)) this.#lastClaimMs = performance.now();
    });
  }

  /** Null when Postgres answers. Why it does not is logged: strangers may ask. */
  databaseTrouble(): Promise<string | null> {
    return this.#trouble.get();
  }

  /**
   * A task that nothing is in the way of, while nothing has been claimed for a minute: the one
   * state that must not be, whatever caused it. Null when there is none.
   */
  async stuckTask(): Promise<Explanation | null> {
    if (performance.now() - this.#lastClaimMs < stuckAfterMs) return null;
    return this.#stuck.get();
  }

  async #findTrouble(): Promise<string | null> {
    try {
      await this.#context.db.vital.query('select 1');
      return null;
    } catch (error) {
      this.#context.log.warn({ err: error }, 'not ready: Postgres does not answer');
      return 'Postgres does not answer. The log of the server says why.';
    }
  }

  async #findStuck(): Promise<Explanation | null> {
    const { reads } = this.#context.db;
    const { rows } = await walkQueued(reads, null, maxLookedAt, instant(this.#context));
    for (const { taskId, ageMs } of rows) {
      if (ageMs < stuckAfterMs) continue;
      const explanation = await this.#explain.explainTask(taskId);
      const isFree = explanation.reasons.every(({ kind }) => kind === 'behind');
      if (isFree && explanation.status === 'queued') return explanation;
    }
    return null;
  }
}
