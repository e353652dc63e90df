import { settingsUnder } from '../domain/circuit.js';
import { instantIn } from '../domain/instant.js';
import type { Cost } from '../domain/queue-settings.js';
import { estimateWaitMs, type WaitFactors } from '../domain/wait-estimate.js';
import type { LiveQueue } from '../ready/ready-queue.js';
import { approximateNow, type EngineContext } from './context.js';
import type { QueueDirectory } from './queue-directory.js';
import { pauseLeftMs } from './queue-pause.js';
import type { Counters } from './counters.js';

/** When a task will start, as far as that is known. */
interface EstimatedStart {
  readonly estimatedWaitSeconds: number | null;
  readonly estimatedStartTime: Date | null;
}

/** How a queue is doing: the same for every task that waits in it. */
export type QueueFactors = Omit<WaitFactors, 'position' | 'cost'>;

const minuteMs = 60_000;

/** How long a task will wait, from the limits of its queue and how fast it moved lately. */
export class Estimate {
  readonly #context: EngineContext;
  readonly #queues: QueueDirectory;
  readonly #counters: Counters;
  /** Looks that are under way, by queue. */
  readonly #looks = new Map<string, Promise<LiveQueue>>();

  constructor(context: EngineContext, queues: QueueDirectory, counters: Counters) {
    this.#context = context;
    this.#queues = queues;
    this.#counters = counters;
  }

  /** A position that is a lower bound makes the wait a lower bound too. */
  async start(queue: string, position: number | null, cost: Cost): Promise<EstimatedStart> {
    const waitMs = await this.waitMs(queue, position, cost);
    return startIn(waitMs, approximateNow(this.#context).getTime());
  }

  /** Null: unknown. */
  async waitMs(queue: string, position: number | null, cost: Cost): Promise<number | null> {
    if (position === null) return null;
    return estimateWaitMs({ ...(await this.#factorsOf(queue)), position, cost });
  }

  /** With a look that was made before. */
  factorsWith(queue: string, live: LiveQueue | null): QueueFactors {
    const nowMs = approximateNow(this.#context).getTime();
    const settings = this.#queues.settingsOf(queue);
    const circuit = this.#queues.circuitOf(queue);
    const { maxConcurrency } = settingsUnder(circuit, settings);
    const averageSeconds = this.#counters.averageDurationSeconds(nowMs, queue);
    return {
      pausedForMs: pauseLeftMs({ settings, circuit }, nowMs),
      buckets: live?.buckets ?? [],
      maxConcurrency,
      running: live?.running ?? 0,
      averageDurationMs: averageSeconds === null ? null : averageSeconds * 1000,
      started: this.#counters.lastMinute(nowMs, queue).started,
      busyMs: live === null ? minuteMs : (live.oldestAgeMs ?? 0),
    };
  }

  /** What it costs to look is paid by queues with limits only. */
  async #factorsOf(queue: string): Promise<QueueFactors> {
    const circuit = this.#queues.circuitOf(queue);
    const { maxConcurrency, limits } = settingsUnder(circuit, this.#queues.settingsOf(queue));
    const isLimited = limits.length > 0 || maxConcurrency !== null;
    return this.factorsWith(queue, isLimited ? await this.#look(queue) : null);
  }

  /** Those who are accepted together have one look for all of them. */
  #look(queue: string): Promise<LiveQueue> {
    const underWay = this.#looks.get(queue);
    if (underWay !== undefined) return underWay;
    const look = this.#context.ready.live(queue).finally(() => this.#looks.delete(queue));
    this.#looks.set(queue, look);
    return look;
  }
}

export function startIn(waitMs: number | null, nowMs: number): EstimatedStart {
  if (waitMs === null) return { estimatedWaitSeconds: null, estimatedStartTime: null };
  return { estimatedWaitSeconds: waitMs / 1000, estimatedStartTime: instantIn(nowMs, waitMs) };
}
