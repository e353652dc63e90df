import { isExact, type Confinement } from '../domain/confinement.js';
import type { Queryable } from '../store/database.js';
import { findWaitingQueues, type NameRange } from '../store/waiting-queues.js';
import { Cached } from './cached.js';

export interface WaitingQueuesOptions {
  /** Found by one look at most; the next one goes on behind them. */
  readonly maxNames: number;
  readonly freshForMs: number;
}

/** Of other sets of patterns the one that was made first is forgotten. */
const maxPatternSets = 1_000;
/** Behind every character of a name, and before each of them. */
const behindAll = '~';
const beforeAll = '!';

/** The queues that have tasks for workers whose keys are confined to beginnings of names. */
export class WaitingQueues {
  readonly #db: Queryable;
  readonly #options: WaitingQueuesOptions;
  readonly #rounds = new Map<string, Cached<readonly string[]>>();

  constructor(db: Queryable, options: WaitingQueuesOptions) {
    this.#db = db;
    this.#options = options;
  }

  /** Sorted: those that the patterns name, and those that they reach and that have a queued task. */
  find({ queues }: Confinement): Promise<readonly string[]> {
    const patterns = (queues ?? ['*']).toSorted();
    const key = patterns.join(' ');
    const known = this.#rounds.get(key);
    if (known !== undefined) return known.get();
    const [oldest] = this.#rounds.keys();
    if (oldest !== undefined && this.#rounds.size >= maxPatternSets) this.#rounds.delete(oldest);
    const round = new Round(this.#db, patterns, this.#options.maxNames);
    const cached = new Cached(this.#options.freshForMs, () => round.look(), { costShare: 0 });
    this.#rounds.set(key, cached);
    return cached.get();
  }
}

/** Goes over all queues that some patterns reach, a part of them with each look. */
class Round {
  readonly #db: Queryable;
  readonly #exact: readonly string[];
  readonly #ranges: readonly NameRange[];
  readonly #maxNames: number;
  /** Found before, the last one last: a poll that waits for them hears of their next task at once. */
  readonly #found = new Set<string>();
  #after: string | null = null;

  constructor(db: Queryable, patterns: readonly string[], maxNames: number) {
    this.#db = db;
    this.#exact = patterns.filter(isExact);
    this.#ranges = rangesOf(patterns);
    this.#maxNames = maxNames;
  }

  async look(): Promise<readonly string[]> {
    const ranges = this.#after === null ? this.#ranges : behind(this.#after, this.#ranges);
    const names = await findWaitingQueues(this.#db, ranges, this.#maxNames);
    this.#after = names.length < this.#maxNames ? null : (names.at(-1) ?? null);
    for (const name of names) {
      this.#found.delete(name);
      this.#found.add(name);
    }
    for (const name of this.#found) {
      if (this.#found.size <= this.#maxNames) break;
      this.#found.delete(name);
    }
    return [...new Set([...this.#exact, ...this.#found])].toSorted();
  }
}

/** In the order of names, and apart: a beginning of another one covers it. */
function rangesOf(patterns: readonly string[]): readonly NameRange[] {
  const prefixes = patterns.filter((pattern) => !isExact(pattern)).map((one) => one.slice(0, -1));
  return prefixes
    .filter((prefix) => !prefixes.some((other) => other !== prefix && prefix.startsWith(other)))
    .toSorted()
    .map((prefix) => ({ low: prefix, high: prefix + behindAll }));
}

function behind(name: string, ranges: readonly NameRange[]): readonly NameRange[] {
  const low = name + beforeAll;
  return ranges
    .filter((range) => range.high > name)
    .map((range) => (range.low > low ? range : { ...range, low }));
}
