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
  /** An item that meets a lock is given up so long after it came. */
  readonly lockedPatienceMs?: number;
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
  readonly addedMs: number;
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

/**
 * An item that meets a lock is given up so long after it came, however its batch is divided. Each try may wait for
 * the lock for 200 ms, and for the tries in front of it: its caller is answered within 5 s.
 */
const usualPatienceMs = 2_500;
const lockedRetryDelaysMs = [20, 50, 100, 200, 400, 800];
/** Locked items share connections with the others. */
const lockedTriesAtOnce = 2;

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
  readonly #lockedTries = new Turns(lockedTriesAtOnce);
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
    const addedMs = performance.now();
    items.forEach((item, index) => this.#gathering.push({ item, addedMs, caller, index }));
    this.#schedule();
    return caller.settled;
  }

  /** For who adds thousands of single ones, and would wait for as many promises. */
  push(item: Item, settle: (settled: Settled<Outcome>) => void): void {
    const caller: Caller<Outcome> = { settle: (_, settled) => settle(settled) };
    this.#gathering.push({ item, addedMs: performance.now(), caller, index: 0 });
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
    if (failure === 'outage') {
      fail(batch, error);
      return;
    }
    const rest = failure === 'locked' ? this.#withoutGivenUp(batch, error) : batch;
    const parts = failure === 'locked' ? this.#groupsIn(rest) : rest.map((waiting) => [waiting]);
    const [only, ...others] = parts;
    if (only === undefined) return;
    if (others.length > 0) {
      const middle = parts.length >> 1;
      await this.#run(parts.slice(0, middle).flat());
      const second = parts.slice(middle).flat();
      await this.#run(failure === 'locked' ? this.#withoutGivenUp(second, error) : second);
    } else if (failure === 'locked') {
      void this.#tryAlone(only, error);
    } else {
      fail(only, error);
    }
  }

  async #tryAlone(first: Waiting<Item, Outcome>[], error: unknown): Promise<void> {
    const group = first[0] === undefined ? null : this.#groupOf(first[0]);
    const behind: Waiting<Item, Outcome>[] = [];
    if (group !== null) this.#behind.set(group, behind);
    await this.#persist(first, error);
    for (let batch = this.#takeFrom(behind); batch.length > 0; batch = this.#takeFrom(behind)) {
      await this.#persist(batch, null);
    }
    if (group !== null) this.#behind.delete(group);
  }

  /** `met`: the lock that it met with others; null: it has not been tried. */
  async #persist(first: readonly Waiting<Item, Outcome>[], met: unknown): Promise<void> {
    let batch = first;
    let failure = met;
    for (let tries = 0; failure === null || this.#judge(failure) === 'locked'; tries++) {
      const delayMs = lockedRetryDelaysMs[tries] ?? lockedRetryDelaysMs.at(-1);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      await this.#lockedTries.run(async () => {
        if (failure !== null) batch = this.#withoutGivenUp(batch, failure);
        failure = await this.#tryFlush(batch);
      });
      if (failure === null) return;
    }
    if (batch.length > 1 && this.#judge(failure) === 'culprit') {
      const middle = batch.length >> 1;
      await this.#persist(batch.slice(0, middle), null);
      await this.#persist(batch.slice(middle), null);
    } else {
      fail(batch, failure);
    }
  }

  /** What it fails with; null: it was written, or nothing was left of it. */
  async #tryFlush(batch: readonly Waiting<Item, Outcome>[]): Promise<unknown> {
    if (batch.length === 0) return null;
    try {
      await this.#flush(batch);
      return null;
    } catch (error) {
      return error;
    }
  }

  /** Those that may be tried again; the others are answered. */
  #withoutGivenUp(
    batch: readonly Waiting<Item, Outcome>[],
    error: unknown,
  ): Waiting<Item, Outcome>[] {
    const { lockedPatienceMs = usualPatienceMs } = this.#options;
    const oldestMs = performance.now() - lockedPatienceMs;
    fail(
      batch.filter(({ addedMs }) => addedMs <= oldestMs),
      error,
    );
    return batch.filter(({ addedMs }) => addedMs > oldestMs);
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

/** So many at once; the others in the order in which they came. */
class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
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
