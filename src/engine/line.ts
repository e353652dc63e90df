import { SlowReadError } from '../store/database.js';
import { countLine, measureAges } from '../store/statistics.js';
import { Cached } from './cached.js';
import { instant, type EngineContext } from './context.js';

export type LineCount = Awaited<ReturnType<typeof countLine>>[number];
type Ages = Awaited<ReturnType<typeof measureAges>>;

const freshForMs = 2_000;

/** How many tasks wait and for how long, right to the last few seconds. */
export class Line {
  readonly #counts: Cached<readonly LineCount[]>;
  readonly #ages: Cached<Ages>;
  #lastCounts: readonly LineCount[] = [];

  constructor(context: EngineContext) {
    this.#counts = new Cached(freshForMs, () => countLine(context.db.reads, instant(context)));
    this.#ages = new Cached(freshForMs, () => measureAges(context.db.reads, instant(context)));
  }

  counts(): Promise<readonly LineCount[]> {
    return this.#counts.get();
  }

  ages(): Promise<Ages> {
    return this.#ages.get();
  }

  /** As last counted, where Postgres takes too long to count: a pause must not look refused for that. */
  async countOf(queue: string): Promise<number> {
    const counts = await this.counts().catch((error: unknown) => {
      if (error instanceof SlowReadError) return this.#lastCounts;
      throw error;
    });
    this.#lastCounts = counts;
    return counts
      .filter((count) => count.queue === queue)
      .reduce((sum, { count }) => sum + count, 0);
  }
}
