import type { TaskEvent } from '../protocol/events.js';
import { QueueTally } from './queue-tally.js';
import { lastHour, lastMinute } from './recent-count.js';

export interface RecentTotals {
  readonly started: number;
  readonly completed: number;
  readonly failed: number;
}

/** Queues that are counted one by one; past this, only the sum over all. */
const defaultMaxQueues = 20_000;
/** As long as anything is counted: a queue that was quiet for longer is forgotten, and nothing with it. */
const forgetEveryMs = 60_000;

/** What this process saw happen lately. */
export class Throughput {
  readonly #all = {
    started: lastMinute(),
    completed: lastMinute(),
    failed: lastMinute(),
    durationMs: lastMinute(),
  };
  readonly #byQueue: QueueTally;
  #nextForgettingMs = -Infinity;
  readonly lapsed = lastHour();
  readonly timedOut = lastHour();
  readonly reoffered = lastHour();

  constructor(maxQueues = defaultMaxQueues) {
    this.#byQueue = new QueueTally(maxQueues);
  }

  /** How many queues are counted one by one. */
  get queues(): number {
    return this.#byQueue.size;
  }

  note(event: TaskEvent): void {
    const nowMs = event.at.getTime();
    if (nowMs >= this.#nextForgettingMs) {
      this.#nextForgettingMs = nowMs + forgetEveryMs;
      this.#byQueue.forgetQuiet(nowMs);
    }
    if (event.outcome === 'lapsed') this.lapsed.add(nowMs);
    if (event.outcome === 'timed_out') this.timedOut.add(nowMs);
    const kind = kindOf(event);
    if (kind === null) return;
    const durationMs = kind === 'completed' ? (event.durationMs ?? 0) : 0;
    this.#all[kind].add(nowMs);
    this.#all.durationMs.add(nowMs, durationMs);
    this.#byQueue.add(event.queue, kind, nowMs, durationMs);
  }

  lastMinute(nowMs: number, queue?: string): RecentTotals {
    return {
      started: this.#total('started', nowMs, queue),
      completed: this.#total('completed', nowMs, queue),
      failed: this.#total('failed', nowMs, queue),
    };
  }

  /** Of those that completed in the last minute; null when none did. */
  averageDurationSeconds(nowMs: number, queue?: string): number | null {
    const completed = this.#total('completed', nowMs, queue);
    return completed === 0 ? null : this.#total('durationMs', nowMs, queue) / completed / 1000;
  }

  #total(kind: keyof RecentTotals | 'durationMs', nowMs: number, queue?: string): number {
    return queue === undefined
      ? this.#all[kind].total(nowMs)
      : this.#byQueue.total(queue, kind, nowMs);
  }
}

function kindOf({ from, to, outcome }: TaskEvent): keyof RecentTotals | null {
  if (to === 'completed') return 'completed';
  if (from === 'queued' && (to === 'assigned' || to === 'executing')) return 'started';
  const wentWrong = outcome === 'failed' || outcome === 'timed_out' || outcome === 'lapsed';
  return wentWrong || to === 'failed' ? 'failed' : null;
}
