export interface BatcherOptions<Item, Outcome> {
  /** One outcome for each item, in order. All or nothing: when it throws, nothing was done. */
  readonly flush: (items: readonly Item[]) => Promise<readonly Outcome[]>;
  readonly maxItems: number;
  /** How many flushes may be under way at once. */
  readonly concurrency?: number;
  readonly weigh?: (item: Item) => number;
  readonly maxWeight?: number;
  /** Says what a failure means for the items of the batch. */
  readonly judge?: (error: unknown) => FlushFailure;
}

/**
 * `culprit`: one item is at fault, find it. `outage`: all fail alike. `locked`: an item is held by
 * somebody else for now; it tries again by itself and delays nobody.
 */
export type FlushFailure = 'culprit' | 'outage' | 'locked';

interface Waiting<Item, Outcome> {
  readonly item: Item;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

const lockedRetryDelaysMs = [20, 50, 100, 200, 400, 800, 1600];

/**
 * Coalesces concurrent calls: while one flush is under way the next gathers, so that throughput
 * grows with load and a lone call waits for nothing. A batch that fails is split until the culprit
 * stands alone: one caller's row never fails another's.
 */
export class Batcher<Item, Outcome> {
  readonly #options: BatcherOptions<Item, Outcome>;
  #gathering: Waiting<Item, Outcome>[] = [];
  #underWay = 0;
  #scheduled = false;

  constructor(options: BatcherOptions<Item, Outcome>) {
    this.#options = options;
  }

  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#gathering.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  addAll(items: readonly Item[]): Promise<Outcome[]> {
    return Promise.all(items.map((item) => this.add(item)));
  }

  /** On a microtask, so that calls made together go together. */
  #schedule(): void {
    if (this.#scheduled || this.#underWay >= (this.#options.concurrency ?? 1)) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      const batch = this.#nextBatch();
      if (batch.length === 0) return;
      this.#underWay += 1;
      void this.#run(batch).finally(() => {
        this.#underWay -= 1;
        if (this.#gathering.length > 0) this.#schedule();
      });
      if (this.#gathering.length > 0) this.#schedule();
    });
  }

  #nextBatch(): Waiting<Item, Outcome>[] {
    const { maxItems, weigh, maxWeight = Infinity } = this.#options;
    if (weigh === undefined) return this.#gathering.splice(0, maxItems);
    let weight = 0;
    let count = 0;
    for (const waiting of this.#gathering) {
      weight += weigh(waiting.item);
      if (count === maxItems || (count > 0 && weight > maxWeight)) break;
      count += 1;
    }
    return this.#gathering.splice(0, count);
  }

  async #run(batch: readonly Waiting<Item, Outcome>[]): Promise<void> {
    try {
      const outcomes = await this.#options.flush(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, index) => {
        resolve(outcomes[index] as Outcome);
      });
    } catch (error) {
      await this.#divide(batch, error);
    }
  }

  async #divide(batch: readonly Waiting<Item, Outcome>[], error: unknown): Promise<void> {
    const failure = this.#options.judge?.(error) ?? 'culprit';
    const [only] = batch;
    if (failure === 'outage') {
      for (const { reject } of batch) reject(error);
    } else if (batch.length === 1 && only !== undefined) {
      if (failure === 'locked') void this.#tryAlone(only, error);
      else only.reject(error);
    } else {
      const middle = batch.length >> 1;
      await this.#run(batch.slice(0, middle));
      await this.#run(batch.slice(middle));
    }
  }

  async #tryAlone(waiting: Waiting<Item, Outcome>, firstError: unknown): Promise<void> {
    let lastError = firstError;
    for (const delayMs of lockedRetryDelaysMs) {
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      try {
        const [outcome] = await this.#options.flush([waiting.item]);
        waiting.resolve(outcome as Outcome);
        return;
      } catch (error) {
        lastError = error;
        if (this.#options.judge?.(error) !== 'locked') break;
      }
    }
    waiting.reject(lastError);
  }
}
