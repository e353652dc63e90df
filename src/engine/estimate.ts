import { settingsUnder } from '../domain/circuit.js';
import type { Cost } from '../domain/queue-settings.js';
import { estimateWaitMs, type WaitFactors } from '../domain/wait-estimate.js';
import type { LiveQueue } from '../ready/ready-queue.js';
import { approximateNow, type EngineContext } from './context.js';
import type { QueueDirectory } from './queue-directory.js';
import { pauseLeftMs } from './queue-pause.js';
import type { Counters } from './counters.js';

/** How a queue is doing: the same for every task that waits in it. */
type QueueFactors = Omit<WaitFactors, 'position' | 'cost'>;

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

  /** A position that is a lower bound makes this one too. */
  async waitSeconds(queue: string, position: number | null, cost: Cost): Promise<number | null> {
    if (position === null) return null;
    const waitMs = estimateWaitMs({ ...(await this.#factorsOf(queue)), position, cost });
    return waitMs === null ? null : waitMs / 1000;
  }

  async #factorsOf(queue: string): Promise<QueueFactors> {
    const nowMs = approximateNow(this.#context).getTime();
    const settings = this.#queues.settingsOf(queue);
    const circuit = this.#queues.circuitOf(queue);
    const { maxConcurrency, limits } = settingsUnder(circuit, settings);
    // What it costs to look is paid by queues with limits only.
    const isLimited = limits.length > 0 || maxConcurrency !== null;
    const averageSeconds = this.#counters.averageDurationSeconds(nowMs, queue);
    const live = isLimited ? await this.#look(queue) : null;
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

  /** Those who are accepted together have one look for all of them. */
  #look(queue: string): Promise<LiveQueue> {
    const underWay = this.#looks.get(queue);
    if (underWay !== undefined) return underWay;
    const look = this.#context.ready.live(queue).finally(() => this.#looks.delete(queue));
    this.#looks.set(queue, look);
    return look;
  }
}
