import type { CaseClock } from './case-clock.js';
import { planBatches, type BatchShape } from './batch-plan.js';
import type { ModelServer } from './model-server.js';
import { ransOf } from './rans.js';
import type { Arrival, Ran } from './work.js';

/** As a careful script does it: a sub-batch that failed is sent again, after twice as long each time. */
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;

/** What people had: fetch all that waits, cut it into parts, and fetch again when all of it is answered. */
export class BatchSystem {
  readonly answeredAt = new Map<number, number>();
  readonly #models: ModelServer;
  readonly #shape: BatchShape;
  readonly #clock: CaseClock;

  constructor(models: ModelServer, shape: BatchShape, clock: CaseClock) {
    this.#models = models;
    this.#shape = shape;
    this.#clock = clock;
  }

  async run(arrivals: readonly Arrival[]): Promise<readonly Ran[]> {
    for (let next = 0; next < arrivals.length;) {
      await this.#clock.until(arrivals[next]?.arrivedMs ?? 0);
      const nowMs = this.#clock.nowMs();
      const fetched = arrivals.slice(next).filter(({ arrivedMs }) => arrivedMs <= nowMs);
      await this.#runRound(fetched);
      next += fetched.length;
    }
    return ransOf(arrivals, await this.#models.log(), this.answeredAt, this.#clock);
  }

  async #runRound(fetched: readonly Arrival[]): Promise<void> {
    const parts = planBatches(fetched, this.#shape);
    await Promise.all(
      parts.map(async (batches) => {
        for (const batch of batches) await this.#runBatch(batch);
      }),
    );
  }

  async #runBatch(batch: readonly Arrival[]): Promise<void> {
    let pauseMs = firstPauseMs;
    for (let attempt = 1; !(await this.#send(batch, attempt)); attempt += 1) {
      await this.#clock.until(this.#clock.nowMs() + pauseMs);
      pauseMs = Math.min(2 * pauseMs, longestPauseMs);
    }
    for (const { task } of batch) this.answeredAt.set(task, Date.now());
  }

  async #send(batch: readonly Arrival[], attempt: number): Promise<boolean> {
    const calls = batch.map(({ task, model, ms }) => {
      return { task, model, ms: this.#clock.realMs(ms), attempt };
    });
    const response = await fetch(`${this.#models.url}/batch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ calls }),
    });
    await response.arrayBuffer();
    return response.ok;
  }
}
