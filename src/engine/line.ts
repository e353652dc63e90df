import { countLine, measureAges } from '../store/statistics.js';
import { instant, type EngineContext } from './context.js';

export type LineCount = Awaited<ReturnType<typeof countLine>>[number];
type Ages = Awaited<ReturnType<typeof measureAges>>;

const freshForMs = 2_000;
/** Counting costs by how many wait; a slow count is kept for longer: at most 5 % of the time. */
const costShare = 20;

/** How many tasks wait and for how long, right to the last few seconds. */
export class Line {
  readonly #counts: Cached<readonly LineCount[]>;
  readonly #ages: Cached<Ages>;

  constructor(context: EngineContext) {
    this.#counts = new Cached(() => countLine(context.db, instant(context)));
    this.#ages = new Cached(() => measureAges(context.db, instant(context)));
  }

  counts(): Promise<readonly LineCount[]> {
    return this.#counts.get();
  }

  ages(): Promise<Ages> {
    return this.#ages.get();
  }

  async backlogOf(queue: string): Promise<number> {
    const counts = await this.counts();
    return counts
      .filter((count) => count.queue === queue && count.status === 'pending')
      .reduce((sum, { count }) => sum + count, 0);
  }
}

class Cached<Value> {
  readonly #read: () => Promise<Value>;
  #value: Promise<Value> | null = null;
  #freshUntilMs = 0;

  constructor(read: () => Promise<Value>) {
    this.#read = read;
  }

  get(): Promise<Value> {
    if (this.#value !== null && performance.now() < this.#freshUntilMs) return this.#value;
    this.#freshUntilMs = Infinity;
    this.#value = this.#refresh();
    return this.#value;
  }

  async #refresh(): Promise<Value> {
    const beganMs = performance.now();
    try {
      const value = await this.#read();
      const tookMs = performance.now() - beganMs;
      this.#freshUntilMs = performance.now() + Math.max(freshForMs, tookMs * costShare);
      return value;
    } catch (error) {
      this.#freshUntilMs = 0;
      throw error;
    }
  }
}
