import { isLeased } from '../domain/task-state.js';
import type { Explanation } from '../protocol/tasks-api.js';
import { walkQueued } from '../store/walk-line.js';
import { Cached } from './cached.js';
import { instant, type EngineContext } from './context.js';
import type { Explain } from './explain.js';
import type { Hearing } from './hearing.js';

/** Each question is asked of Postgres once in so long, however many callers ask it. */
const freshForMs = 1_000;
const stuckAfterMs = 60_000;
const maxLookedAt = 20;

/** Whether this process can serve, and whether it does. Neither question changes anything. */
export class Health {
  readonly #context: EngineContext;
  readonly #explain: Explain;
  readonly #hearing: Hearing;
  readonly #stuck: Cached<Explanation | null>;
  #lastClaimMs = performance.now();

  constructor(context: EngineContext, explain: Explain, hearing: Hearing) {
    this.#context = context;
    this.#explain = explain;
    this.#hearing = hearing;
    this.#stuck = new Cached(freshForMs, () => this.#findStuck());
    context.events.subscribe(({ from, to }) => {
      if (from === 'queued' && isLeased(to)) this.#lastClaimMs = performance.now();
    });
  }

  /** Null when Postgres answers and writes; else why not. It asks nothing: the last proof says. */
  databaseTrouble(): string | null {
    return this.#hearing.trouble() ?? this.#context.outage?.() ?? null;
  }

  /**
   * A task that nothing is in the way of, while nothing has been claimed for a minute: the one
   * state that must not be, whatever caused it. Null when there is none.
   */
  async stuckTask(): Promise<Explanation | null> {
    if (performance.now() - this.#lastClaimMs < stuckAfterMs) return null;
    return this.#stuck.get();
  }

  /** As `stuckTask`, for whoever knows that no server has claimed anything for a minute. */
  findUnhindered(): Promise<Explanation | null> {
    return this.#stuck.get();
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
