import { findCountsAge, purgeCounts, sumUpCounts, type SumUp } from '../store/counters.js';
import { instant, type EngineContext } from './context.js';

const minuteMs = 60_000;
const dayMs = 24 * 3_600_000;
/** Long enough for the sums of the last minute. */
const slotsKeptMs = 3 * minuteMs;
const minutesKeptMs = 7 * dayMs;
const hoursKeptMs = 90 * dayMs;
/** Of minutes, and of hours: about 0.5 GB each. With more queues than that holds, they are kept for less long. */
const defaultMaxRows = 1_000_000;
const rowsAtOnce = 5_000;
const roundsAtOnce = 20;
/** Until the next tick, when one was not enough. */
const soonMs = 1_000;
/** How often it is looked whether there are too many rows. */
const boundEveryTicks = 10;

/** Sums slots up to minutes and minutes up to hours, and deletes hours, so that the counts stay small. */
export class CounterUpkeep {
  readonly #context: EngineContext;
  readonly #maxRows: number;
  #ticks = 0;
  #minutesKeptMs = minutesKeptMs;
  #hoursKeptMs = hoursKeptMs;

  constructor(context: EngineContext, maxRows = defaultMaxRows) {
    this.#context = context;
    this.#maxRows = maxRows;
  }

  async tick(): Promise<number> {
    if (this.#ticks % boundEveryTicks === 0) await this.#bound();
    this.#ticks += 1;
    const areDone = [
      await this.#sumUp({ from: 5, to: 60, olderThanMs: slotsKeptMs }),
      await this.#sumUp({ from: 60, to: 3_600, olderThanMs: this.#minutesKeptMs }),
      await this.#inRounds(() => this.#purge()),
    ];
    return areDone.every((isDone) => isDone) ? minuteMs : soonMs;
  }

  async #bound(): Promise<void> {
    const { db } = this.#context;
    const now = instant(this.#context);
    this.#minutesKeptMs = await findCountsAge(db, 60, this.#maxRows, minutesKeptMs, now);
    this.#hoursKeptMs = await findCountsAge(db, 3_600, this.#maxRows, hoursKeptMs, now);
  }

  #sumUp(step: Omit<SumUp, 'limit'>): Promise<boolean> {
    const { db } = this.#context;
    const rows = { ...step, limit: rowsAtOnce };
    return this.#inRounds(() => sumUpCounts(db, rows, instant(this.#context)));
  }

  #purge(): Promise<number> {
    const { db } = this.#context;
    return purgeCounts(db, this.#hoursKeptMs, rowsAtOnce, instant(this.#context));
  }

  /** False: there is more to do. The next tick, which comes soon, goes on. */
  async #inRounds(round: () => Promise<number>): Promise<boolean> {
    for (let rounds = 0; rounds < roundsAtOnce; rounds++) {
      if ((await round()) < rowsAtOnce) return true;
    }
    return false;
  }
}
