import { isLeased } from '../domain/task-state.js';
import type { Explanation } from '../protocol/tasks-api.js';
import { walkQueued } from '../store/walk-line.js';
import { instant, type EngineContext } from './context.js';
import type { Explain } from './explain.js';

const stuckAfterMs = 60_000;
const maxLookedAt = 20;

/** Whether this process can serve, and whether it does. Neither question changes anything. */
export class Health {
  readonly #context: EngineContext;
  readonly #explain: Explain;
  #lastClaimMs = performance.now();

  constructor(context: EngineContext, explain: Explain) {
    this.#context = context;
    this.#explain = explain;
    context.events.subscribe(({ from, to }) => {
      if (from === 'queued' && isLeased(to)) this.#lastClaimMs = performance.now();
    });
  }

  /** Null when Postgres answers; else why it does not. */
  async databaseTrouble(): Promise<string | null> {
    try {
      await this.#context.db.query('select 1');
      return null;
    } catch (error) {
      return `Postgres does not answer: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  /**
   * A task that nothing is in the way of, while nothing has been claimed for a minute: the one
   * state that must not be, whatever caused it. Null when there is none.
   */
  async stuckTask(): Promise<Explanation | null> {
    if (performance.now() - this.#lastClaimMs < stuckAfterMs) return null;
    const { rows } = await walkQueued(this.#context.db, null, maxLookedAt, instant(this.#context));
    for (const { taskId, ageMs } of rows) {
      if (ageMs < stuckAfterMs) continue;
      const explanation = await this.#explain.explainTask(taskId);
      const isFree = explanation.reasons.every(({ kind }) => kind === 'behind');
      if (isFree && explanation.status === 'queued') return explanation;
    }
    return null;
  }
}
