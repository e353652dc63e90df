import { AsyncLocalStorage } from 'node:async_hooks';

interface Timer {
  readonly run: () => void;
  readonly owner: object | undefined;
  readonly order: number;
  readonly everyMs: number | null;
  atMs: number;
}

type Callback = (...given: unknown[]) => void;

const mostTimersAtOnce = 50_000;
const pauseMs = 3_600_000;

const realImmediate = setImmediate;
const realPerformanceNow = performance.now.bind(performance);

/** The clock of the wall, for what is told to people. */
export function wallMs(): number {
  return realPerformanceNow();
}

/**
 * The time of this whole process, turned by hand: what asks for the time or sets a timer, embedded
 * Postgres included, gets it from here. So the engine runs as it is, with all its loops, and the same
 * steps always give the same history. Everything between two timers happens in microtasks.
 */
export class VirtualTime {
  readonly #owners = new AsyncLocalStorage<object>();
  #timers: Timer[] = [];
  #nowMs = 0;
  #originMs = 0;
  #made = 0;

  static install(): VirtualTime {
    const time = new VirtualTime();
    Date.now = () => time.#nowMs;
    Object.defineProperty(performance, 'now', { value: () => time.#nowMs - time.#originMs });
    const clear = (timer: unknown) => time.#clear(timer);
    Object.assign(globalThis, {
      setTimeout: (run: Callback, ms?: number, ...given: unknown[]) =>
        time.#set(() => run(...given), atLeastOne(ms), null),
      setInterval: (run: Callback, ms?: number, ...given: unknown[]) =>
        time.#set(() => run(...given), atLeastOne(ms), atLeastOne(ms)),
      setImmediate: (run: Callback, ...given: unknown[]) => time.#set(() => run(...given), 0, null),
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    });
    return time;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** A new beginning, without any timer. The steady clock goes on, and is far ahead. */
  reset(startMs: number): void {
    const steadyMs = this.#nowMs - this.#originMs + pauseMs;
    this.#timers = [];
    this.#made = 0;
    this.#nowMs = startMs;
    this.#originMs = startMs - steadyMs;
  }

  /** Timers set by this work, and by all that follows from it, belong to the owner. */
  owned<Answer>(owner: object, work: () => Answer): Answer {
    return this.#owners.run(owner, work);
  }

  drop(owner: object): void {
    this.#timers = this.#timers.filter((timer) => timer.owner !== owner);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#set(resolve, atLeastOne(ms), null));
  }

  /** Time passes, and each timer ends when it should. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (let ended = 0; ended < mostTimersAtOnce; ended++) {
      await quiet();
      const next = this.#next(endMs);
      if (next === null) {
        this.#nowMs = endMs;
        return;
      }
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      this.#end(next);
    }
    throw new Error(`more than ${mostTimersAtOnce} timers ended within ${ms} ms: something spins`);
  }

  /** The process was frozen: timers end late, all of them now. */
  async jump(ms: number): Promise<void> {
    await quiet();
    this.#nowMs += ms;
    await this.pass(0);
  }

  #set(run: () => void, ms: number, everyMs: number | null): unknown {
    this.#made += 1;
    const timer: Timer = {
      run,
      owner: this.#owners.getStore(),
      order: this.#made,
      everyMs,
      atMs: this.#nowMs + ms,
    };
    this.#timers.push(timer);
    const handle = {
      timer,
      ref: () => handle,
      unref: () => handle,
      hasRef: () => true,
      [Symbol.dispose]: () => this.#clear(handle),
    };
    return handle;
  }

  #clear(handle: unknown): void {
    if (typeof handle !== 'object' || handle === null || !('timer' in handle)) return;
    const { timer } = handle;
    this.#timers = this.#timers.filter((other) => other !== timer);
  }

  #next(untilMs: number): Timer | null {
    let first: Timer | null = null;
    for (const timer of this.#timers) {
      if (timer.atMs > untilMs) continue;
      if (first === null || isBefore(timer, first)) first = timer;
    }
    return first;
  }

  #end(timer: Timer): void {
    if (timer.everyMs === null) this.#timers = this.#timers.filter((other) => other !== timer);
    else timer.atMs = this.#nowMs + timer.everyMs;
    if (timer.owner === undefined) timer.run();
    else this.#owners.run(timer.owner, timer.run);
  }
}

/** As timers do: no time at all is a millisecond, and a fraction is the whole. */
function atLeastOne(ms = 1): number {
  return Number.isFinite(ms) ? Math.max(1, Math.ceil(ms)) : 1;
}

function isBefore(one: Timer, other: Timer): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

/** Until no microtask is left: embedded Postgres answers within them. */
function quiet(): Promise<void> {
  return new Promise((resolve) => realImmediate(resolve));
}
