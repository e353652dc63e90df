import type { TaskEvent } from '../protocol/events.js';
import { lastHour, lastMinute, type RecentCount } from './recent-count.js';

interface Recent {
  readonly started: RecentCount;
  readonly completed: RecentCount;
  readonly failed: RecentCount;
  readonly durationMs: RecentCount;
}

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
  readonly #all = recent();
  readonly #byQueue = new Map<string, Recent>();
  readonly #maxQueues: number;
  #nextForgettingMs = -Infinity;
  readonly lapsed = lastHour();
  readonly timedOut = lastHour();
  readonly reoffered = lastHour();

  constructor(maxQueues = defaultMaxQueues) {
    this.#maxQueues = maxQueues;
  }

  /** How many queues are counted one by one. */
  get queues(): number {
    return this.#byQueue.size;
  }

  note(event: TaskEvent): void {
    const nowMs = event.at.getTime();
    if (nowMs >= this.#nextForgettingMs) this.#forgetQuiet(nowMs);
    if (event.outcome === 'lapsed') this.lapsed.add(nowMs);
    if (event.outcome === 'timed_out') this.timedOut.add(nowMs);
    const kind = kindOf(event);
    if (kind === null) return;
    count(this.#all, kind, event, nowMs);
    count(this.#ofQueue(event.queue), kind, event, nowMs);
  }

  lastMinute(nowMs: number, queue?: string): RecentTotals {
    const counts = queue === undefined ? this.#all : this.#byQueue.get(queue);
    return {
      started: counts?.started.total(nowMs) ?? 0,
      completed: counts?.completed.total(nowMs) ?? 0,
      failed: counts?.failed.total(nowMs) ?? 0,
    };
  }

  /** Of those that completed in the last minute; null when none did. */
  averageDurationSeconds(nowMs: number, queue?: string): number | null {
    const counts = queue === undefined ? this.#all : this.#byQueue.get(queue);
    const completed = counts?.completed.total(nowMs) ?? 0;
    return counts === undefined || completed === 0
      ? null
      : counts.durationMs.total(nowMs) / completed / 1000;
  }

  #forgetQuiet(nowMs: number): void {
    this.#nextForgettingMs = nowMs + forgetEveryMs;
    for (const [queue, { started, completed, failed }] of this.#byQueue) {
      const isQuiet = [started, completed, failed].every((count) => count.isQuiet(nowMs));
      if (isQuiet) this.#byQueue.delete(queue);
    }
  }

  #ofQueue(queue: string): Recent | undefined {
    const known = this.#byQueue.get(queue);
    if (known !== undefined || this.#byQueue.size >= this.#maxQueues) return known;
    const created = recent();
    this.#byQueue.set(queue, created);
    return created;
  }
}

function count(
  counts: Recent | undefined,
  kind: keyof RecentTotals,
  { durationMs = 0 }: TaskEvent,
  nowMs: number,
): void {
  counts?.[kind].add(nowMs);
  if (kind === 'completed') counts?.durationMs.add(nowMs, durationMs);
}

function recent(): Recent {
  return {
    started: lastMinute(),
    completed: lastMinute(),
    failed: lastMinute(),
    durationMs: lastMinute(),
  };
}

function kindOf({ from, to, outcome }: TaskEvent): keyof RecentTotals | null {
  if (to === 'completed') return 'completed';
  if (from === 'queued' && (to === 'assigned' || to === 'executing')) return 'started';
  const wentWrong = outcome === 'failed' || outcome === 'timed_out' || outcome === 'lapsed';
  return wentWrong || to === 'failed' ? 'failed' : null;
}
