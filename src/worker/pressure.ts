import { totalmem } from 'node:os';
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Pressure } from '../domain/claim-size.js';

export interface PressureOptions {
  /** What the process may use; absent: the container's limit, or the machine's memory. */
  readonly memoryLimitBytes?: number | undefined;
  /** Absent: durations are no pressure, since only the user knows which are too long. */
  readonly latencyThresholdMs?: number | undefined;
}

/** How long what the system says counts as the present: to ask it takes up to a millisecond. */
const freshMs = 20;

/** What the worker reads before it claims, and tells in its heartbeats. */
export class PressureGauge {
  readonly #memoryLimitBytes: number;
  readonly #latencyThresholdMs: number;
  readonly #eventLoop = new EventLoopDelay();
  readonly #durations = new RecentDurations();
  #system: Omit<Pressure, 'durationShare'> = { memoryShare: 0, eventLoopDelayMs: 0 };
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor({ memoryLimitBytes = visibleMemoryLimit(), latencyThresholdMs }: PressureOptions) {
    this.#memoryLimitBytes = positive('memoryLimitBytes', memoryLimitBytes);
    this.#latencyThresholdMs = positive('latencyThresholdMs', latencyThresholdMs ?? Infinity);
  }

  start(): void {
    this.#eventLoop.start();
  }

  stop(): void {
    this.#eventLoop.stop();
  }

  noteDuration(ms: number): void {
    if (this.#latencyThresholdMs < Infinity) this.#durations.add(ms);
  }

  read(): Pressure {
    const nowMs = performance.now();
    if (nowMs - this.#readAtMs >= freshMs) {
      this.#readAtMs = nowMs;
      this.#system = {
        memoryShare: this.#memoryShare(),
        eventLoopDelayMs: this.#eventLoop.p99Ms,
      };
    }
    return { ...this.#system, durationShare: this.#durations.p99Ms / this.#latencyThresholdMs };
  }

  /** A full heap ends the process as surely as the kernel does: the nearer of the two counts. */
  #memoryShare(): number {
    const heap = getHeapStatistics();
    return Math.max(
      process.memoryUsage.rss() / this.#memoryLimitBytes,
      heap.used_heap_size / heap.heap_size_limit,
    );
  }
}

/**
 * Node knows the limit of cgroups v1 and v2. Where there is none it answers 0, or, against its
 * documentation, 2^64.
 */
function visibleMemoryLimit(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

function positive(name: string, value: number): number {
  if (value > 0) return value;
  throw new RangeError(`${name} must be more than 0, not ${String(value)}`);
}

const sampleMs = 20;
const windowMs = 500;

/**
 * Of the last half to whole second, which is at most 50 samples: their p99 is the worst of them. Two
 * histograms take turns, because one that was just reset misses its first sample, and a worker tends
 * to be blocked right after it looked: by what it then claimed.
 */
class EventLoopDelay {
  #older = monitorEventLoopDelay({ resolution: sampleMs });
  #newer = monitorEventLoopDelay({ resolution: sampleMs });
  #turning: NodeJS.Timeout | undefined;

  /** Neither the histograms nor the timer keep the process alive. */
  start(): void {
    this.#older.enable();
    this.#newer.enable();
    this.#turning = setInterval(() => this.#turn(), windowMs).unref();
  }

  stop(): void {
    clearInterval(this.#turning);
    this.#older.disable();
    this.#newer.disable();
  }

  get p99Ms(): number {
    return Math.max(0, p99(this.#older) - sampleMs);
  }

  #turn(): void {
    [this.#older, this.#newer] = [this.#newer, this.#older];
    this.#newer.reset();
  }
}

/** A sample is the time between two looks, so that it holds the interval itself. */
function p99(histogram: IntervalHistogram): number {
  return histogram.percentile(99) / 1e6;
}

const recentCount = 200;

class RecentDurations {
  readonly #recent = new Float64Array(recentCount);
  #added = 0;

  add(ms: number): void {
    this.#recent[this.#added % recentCount] = ms;
    this.#added += 1;
  }

  get p99Ms(): number {
    const count = Math.min(this.#added, recentCount);
    if (count === 0) return 0;
    const sorted = this.#recent.slice(0, count).sort();
    return sorted[Math.ceil(count * 0.99) - 1] ?? 0;
  }
}
