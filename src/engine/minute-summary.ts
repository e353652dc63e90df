import { countOf, type CounterName } from '../domain/counters.js';
import { SlowReadError } from '../store/database.js';
import type { EngineContext } from './context.js';
import type { Counters } from './counters.js';
import type { Line } from './line.js';

const minuteMs = 60_000;

/** What ends a task. */
const endings = ['completed', 'dead_letter', 'cancelled', 'expired'] as const;
const counted = ['submitted', 'started', ...endings, 'retried', 'refused'] as const;

type Totals = Readonly<Record<(typeof counted)[number], number>>;

interface Waiting {
  readonly waiting: number;
  readonly oldest_seconds: number;
}

/**
 * One line a minute: what this process did, and what waits in all queues. Silent while nothing happens and nothing
 * waits.
 */
export class MinuteSummary {
  readonly #context: EngineContext;
  readonly #counters: Counters;
  readonly #line: Line;
  /** Null: it has not ticked yet. */
  #last: Totals | null = null;

  constructor(context: EngineContext, counters: Counters, line: Line) {
    this.#context = context;
    this.#counters = counters;
    this.#line = line;
  }

  async tick(): Promise<number> {
    const { log, transitions } = this.#context;
    if (transitions?.isOn !== true || !log.isLevelEnabled('info')) return minuteMs;
    const last = this.#last;
    const totals = this.#totals();
    this.#last = totals;
    if (last === null) return minuteMs;
    const done = Object.fromEntries(
      counted.map((name) => [name, totals[name] - last[name]]),
    ) as Totals;
    const waiting = await this.#waiting();
    const hasWork = counted.some((name) => done[name] > 0) || (waiting?.waiting ?? 0) > 0;
    if (!hasWork) return minuteMs;
    const { submitted, started, ...others } = done;
    const ended = endings.reduce((sum, name) => sum + done[name], 0);
    log.info({ submitted, started, ended, ...others, ...waiting }, 'the last minute');
    return minuteMs;
  }

  #totals(): Totals {
    const sums = this.#counters.processTotals();
    return Object.fromEntries(
      counted.map((name: CounterName) => [name, countOf(sums, name)]),
    ) as Totals;
  }

  /** Null: Postgres takes too long to count. */
  async #waiting(): Promise<Waiting | null> {
    try {
      const levels = Object.values((await this.#line.snapshot()).total);
      const oldestMs = Math.max(0, ...levels.map(({ oldestAgeMs }) => oldestAgeMs ?? 0));
      return {
        waiting: levels.reduce((sum, { count }) => sum + count, 0),
        oldest_seconds: Math.round(oldestMs / 1000),
      };
    } catch (error) {
      if (error instanceof SlowReadError) return null;
      throw error;
    }
  }
}
