export interface BatcherOptions<Item, Outcome> {
  /** One outcome for each item, in order. All or nothing: when it throws, nothing was done. */
  readonly flush: (items: readonly Item[]) => Promise<readonly Outcome[]>;
  readonly maxItems: number;
  /** How many flushes may be under way at once. */
  readonly concurrency?: number;
  /** With fewer items a flush waits for the one that is under way: small ones cost more than they gain. */
  readonly leastBesides?: number;
  /** How long a flush waits for others to come along; asked before each. Absent: not at all. */
  readonly gatherMs?: () => number;
  readonly weigh?: (item: Item) => number;
  readonly maxWeight?: number;
  /**
   * Items of one group are written in the order they came, also when they are locked. For one flush
   * at a time; null is in no group.
   */
  readonly groupOf?: (item: Item) => string | null;
  /** Says what a failure means for the items of the batch. */
  readonly judge?: (error: unknown) => FlushFailure;
}

/**
 * `culprit`: one item is at fault, find it. `outage`: all fail alike. `locked`: an item is held by
 * somebody else for now; it tries again by itself, or with its group, and delays nobody else.
 */
export type FlushFailure = 'culprit' | 'outage' | 'locked';

interface Waiting<Item, Outcome> {
  readonly item: Item;
  readonly caller: Caller<Outcome>;
  /** Of the caller's items. */
  readonly index: number;
}

/** What became of one item. */
export type Settled<Outcome> =
  | { readonly kind: 'done'; readonly outcome: Outcome }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Who is told what became of its items. */
interface Caller<Outcome> {
  settle(index: number, settled: Settled<Outcome>): void;
}

/** One call, of one item or of many: what it waits for is one promise. */
class Call<Outcome> implements Caller<Outcome> {
  readonly settled: Promise<readonly Settled<Outcome>[]>;
  readonly #all: Settled<Outcome>[] = [];
  #left: number;
  #resolve: (all: readonly Settled<Outcome>[]) => void = () => undefined;

  constructor(count: number) {
    this.#left = count;
    this.settled = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  settle(index: number, settled: Settled<Outcome>): void {
    this.#all[index] = settled;
    this.#left -= 1;
    if (this.#left === 0) this.#resolve(this.#all);
  }
}

const lockedRetryDelaysMs = [20, 50, 100, 200, 400, 800, 1600];

/**
 * Coalesces concurrent calls: while one flush is under way the next gathers, so that throughput
 * grows with load and a lone call waits for nothing. A batch that fails is split until the culprit
 * stands alone: one caller's row never fails another's.
 */
export class Batcher<Item, Outcome> {
  readonly #options: BatcherOptions<Item, Outcome>;
  readonly #gathering: Waiting<Item, Outcome>[] = [];
  /** What came for a group while it was locked. */
  readonly #behind = new Map<string, Waiting<Item, Outcome>[]>();
  #underWay = 0;
  #scheduled = false;

  constructor(options: BatcherOptions<Item, Outcome>) {
    this.#options = options;
  }

  async add(item: Item): Promise<Outcome> {
    const [outcome] = outcomesOf(await this.settleAll([item]));
    return outcome as Outcome;
  }

  /** Rejects when all are settled and one of them failed. */
  async addAll(items: readonly Item[]): Promise<Outcome[]> {
    return outcomesOf(await this.settleAll(items));
  }

  /** What became of each, in order. */
  settleAll(items: readonly Item[]): Promise<readonly Settled<Outcome>[]> {
    if (items.length === 0) return Promise.resolve([]);
    const caller = new Call<Outcome>(items.length);
    items.forEach((item, index) => this.#gathering.push({ item, caller, index }));
    this.#schedule();
    return caller.settled;
  }

  /** For who adds thousands of single ones, and would wait for as many promises. */
  push(item: Item, settle: (settled: Settled<Outcome>) => void): void {
    this.#gathering.push({ item, caller: { settle: (_, settled) => settle(settled) }, index: 0 });
    this.#schedule();
  }

  #schedule(): void {
    const { maxItems, gatherMs, concurrency = 1, leastBesides = 1 } = this.#options;
    if (this.#scheduled || this.#underWay >= concurrency) return;
    if (this.#underWay > 0 && this.#gathering.length < leastBesides) return;
    this.#scheduled = true;
    const delayMs = this.#gathering.length >= maxItems ? 0 : (gatherMs?.() ?? 0);
    // On a microtask, so that calls made together go together.
    if (delayMs > 0) setTimeout(() => this.#begin(), delayMs);
    else queueMicrotask(() => this.#begin());
  }

  #begin(): void {
    this.#scheduled = false;
    const batch = this.#takeFrom(this.#gathering);
    if (batch.length === 0) return;
    this.#underWay += 1;
    void this.#run(batch).finally(() => {
      this.#underWay -= 1;
      if (this.#gathering.length > 0) this.#schedule();
    });
    if (this.#gathering.length > 0) this.#schedule();
  }

  #takeFrom(line: Waiting<Item, Outcome>[]): Waiting<Item, Outcome>[] {
    const { maxItems, weigh, maxWeight = Infinity } = this.#options;
    if (weigh === undefined) return line.splice(0, maxItems);
    let weight = 0;
    let count = 0;
    for (const waiting of line) {
      weight += weigh(waiting.item);
      if (count === maxItems || (count > 0 && weight > maxWeight)) break;
      count += 1;
    }
    return line.splice(0, count);
  }

  async #run(batch: readonly Waiting<Item, Outcome>[]): Promise<void> {
    const free = this.#behind.size === 0 ? batch : this.#withoutLocked(batch);
    if (free.length === 0) return;
    try {
      await this.#flush(free);
    } catch (error) {
      await this.#divide(free, error);
    }
  }

  async #flush(batch: readonly Waiting<Item, Outcome>[]): Promise<void> {
    const outcomes = await this.#options.flush(batch.map(({ item }) => item));
    batch.forEach(({ caller, index }, n) =>
      caller.settle(index, { kind: 'done', outcome: outcomes[n] as Outcome }),
    );
  }

  #withoutLocked(batch: readonly Waiting<Item, Outcome>[]): Waiting<Item, Outcome>[] {
    return batch.filter((waiting) => {
      const behind = this.#behind.get(this.#groupOf(waiting) ?? '');
      behind?.push(waiting);
      return behind === undefined;
    });
  }

  async #divide(batch: readonly Waiting<Item, Outcome>[], error: unknown): Promise<void> {
    const failure = this.#judge(error);
    const parts = failure === 'locked' ? this.#groupsIn(batch) : batch.map((waiting) => [waiting]);
    const [only, ...others] = parts;
    if (failure === 'outage' || only === undefined) {
      fail(batch, error);
    } else if (others.length > 0) {
      const middle = parts.length >> 1;
      await this.#run(parts.slice(0, middle).flat());
      await this.#run(parts.slice(middle).flat());
    } else if (failure === 'locked') {
      void this.#tryAlone(only);
    } else {
      fail(only, error);
    }
  }

  async #tryAlone(first: Waiting<Item, Outcome>[]): Promise<void> {
    const group = first[0] === undefined ? null : this.#groupOf(first[0]);
    const behind: Waiting<Item, Outcome>[] = [];
    if (group !== null) this.#behind.set(group, behind);
    let batch = first;
    while (batch.length > 0) {
      await this.#persist(batch);
      batch = this.#takeFrom(behind);
    }
    if (group !== null) this.#behind.delete(group);
  }

  async #persist(batch: readonly Waiting<Item, Outcome>[]): Promise<void> {
    let failure: unknown;
    for (const delayMs of lockedRetryDelaysMs) {
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      try {
        await this.#flush(batch);
        return;
      } catch (error) {
        failure = error;
        if (this.#judge(error) !== 'locked') break;
      }
    }
    if (batch.length > 1 && this.#judge(failure) === 'culprit') {
      const middle = batch.length >> 1;
      await this.#persist(batch.slice(0, middle));
      await this.#persist(batch.slice(middle));
    } else {
      fail(batch, failure);
    }
  }

  #judge(error: unknown): FlushFailure {
    return this.#options.judge?.(error) ?? 'culprit';
  }

  #groupOf({ item }: Waiting<Item, Outcome>): string | null {
    return this.#options.groupOf?.(item) ?? null;
  }

  /** Each item of no group by itself. */
  #groupsIn(batch: readonly Waiting<Item, Outcome>[]): Waiting<Item, Outcome>[][] {
    const groups = new Map<unknown, Waiting<Item, Outcome>[]>();
    for (const waiting of batch) {
      const key = this.#groupOf(waiting) ?? waiting;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [waiting]);
      else group.push(waiting);
    }
    return [...groups.values()];
  }
}

function fail<Item, Outcome>(batch: readonly Waiting<Item, Outcome>[], error: unknown): void {
  for (const { caller, index } of batch) caller.settle(index, { kind: 'failed', error });
}

function outcomesOf<Outcome>(all: readonly Settled<Outcome>[]): Outcome[] {
  return all.map((settled) => {
    if (settled.kind === 'failed') throw settled.error;
    return settled.outcome;
  });
}
