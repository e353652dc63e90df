import { allQueues } from '../domain/admission.js';
import type { Priority } from '../domain/priority.js';
import type { Refused } from '../store/new-task.js';

/** As long may a place that got free at another server be overlooked. */
const rememberedMs = 25;

interface Remembered {
  readonly refused: Refused;
  readonly untilMs: number;
}

/**
 * Ceilings that were found reached a moment ago. Whoever comes right after is refused without another
 * look at Postgres: while most are refused, that look is most of what a refusal costs.
 */
export class ReachedCeilings {
  readonly #remembered = new Map<string, Remembered>();

  note(priority: Priority, refused: Refused): void {
    const untilMs = performance.now() + rememberedMs;
    this.#remembered.set(keyOf(refused.reached.scope, priority), { refused, untilMs });
  }

  /** Null: it has to be looked for. */
  find(queue: string, priority: Priority): Refused | null {
    if (this.#remembered.size === 0) return null;
    return this.#findIn(allQueues, priority) ?? this.#findIn(queue, priority);
  }

  /** A place got free, or a ceiling is another one. */
  forget(): void {
    // Asked at every end of a task; to clear what is empty makes a new table.
    if (this.#remembered.size > 0) this.#remembered.clear();
  }

  #findIn(scope: string, priority: Priority): Refused | null {
    const key = keyOf(scope, priority);
    const found = this.#remembered.get(key);
    if (found === undefined) return null;
    if (performance.now() < found.untilMs) return found.refused;
    this.#remembered.delete(key);
    return null;
  }
}

function keyOf(scope: string, priority: Priority): string {
  return `${priority} ${scope}`;
}
