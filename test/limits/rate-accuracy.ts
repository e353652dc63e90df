import { firstIdAt } from '../../src/domain/ids.js';
import { defaultQueueSettings, type RateLimit } from '../../src/domain/queue-settings.js';
import { ownBucket, tokensAfterLoss } from '../../src/domain/token-bucket.js';
import type { ManualClock } from '../../src/runtime/clock.js';
import type {
  Finished,
  Grant,
  Offer,
  ReadyQueue,
  TakeRequest,
} from '../../src/ready/ready-queue.js';
import { mostInWindow } from './sliding-window.js';

export interface RateRun {
  readonly clock: ManualClock;
  /** One for each server; they share their contents. */
  readonly queues: readonly ReadyQueue[];
  readonly rate: number;
  readonly minutes: number;
  /** Called once, in the middle: the contents are lost. */
  readonly lose?: () => Promise<void>;
  readonly random: () => number;
}

export interface RateMeasured {
  readonly granted: number;
  readonly mostInAMinute: number;
  readonly usedShare: number;
}

const queue = 'q';
const minuteMs = 60_000;
/** As many wait at first; when half of them are taken, as many come. */
const waiting = 100;
const anyWork: TakeRequest = { taskTypes: null, capabilities: [], queues: null, count: 1 };

/**
 * Workers that always have work and always room take as fast as they may, by a clock that is turned
 * by hand. They wake up to 3 ms late; servers take turns in serving them.
 */
export async function measureRate(run: RateRun): Promise<RateMeasured> {
  const { clock, queues, rate, minutes, random } = run;
  const limit: RateLimit = { unit: 'requests', rate, perSeconds: 60, burst: null };
  const simulation = new Simulation(run, limit);
  await simulation.restore();
  const startMs = clock.nowMs();
  const endMs = startMs + minutes * minuteMs;
  let lose = run.lose;
  while (clock.nowMs() < endMs) {
    if (lose !== undefined && clock.nowMs() > (startMs + endMs) / 2) {
      await lose();
      lose = undefined;
    }
    await simulation.checkpoint();
    const waitMs = await simulation.take(queues[Math.floor(random() * queues.length)]);
    if (waitMs > 0) clock.advance(Math.min(waitMs, 1_000) + Math.floor(random() * 4));
  }
  const { grants } = simulation;
  return {
    granted: grants.length,
    mostInAMinute: mostInWindow(
      grants.map((atMs) => ({ atMs, amount: 1 })),
      minuteMs,
    ),
    usedShare: grants.length / (rate * minutes),
  };
}

function finished({ taskId, grant }: Grant): Finished {
  return { taskId, grant, queue, reserved: {}, usage: null };
}

class Simulation {
  readonly grants: number[] = [];
  readonly #run: RateRun;
  readonly #limit: RateLimit;
  #generation = 0;
  #offered = 0;
  #taken: Grant[] = [];
  #checkpoint: { tokens: number; atMs: number } | null = null;

  constructor(run: RateRun, limit: RateLimit) {
    this.#run = run;
    this.#limit = limit;
  }

  /** As the engine does: the last checkpoint, less what could have been granted since. */
  async restore(): Promise<void> {
    const [first] = this.#run.queues;
    if (first === undefined || (await first.beginRestore(this.#generation)) !== 'yours') return;
    this.#generation += 1;
    const limits = [this.#limit];
    const settings = { ...defaultQueueSettings, limits };
    await first.restore({
      generation: this.#generation,
      limits: [],
      queues: [{ name: queue, version: 1, settings, pausedForMs: null, probes: null }],
      levels: this.#levels(),
      running: [],
      behind: [],
    });
    this.#taken = [];
    await first.offer(Array.from({ length: waiting }, () => this.#offer()));
  }

  /** Once a second. */
  async checkpoint(): Promise<void> {
    const nowMs = this.#run.clock.nowMs();
    if (this.#checkpoint !== null && nowMs - this.#checkpoint.atMs < 1_000) return;
    const [level] = (await this.#run.queues[0]?.levels()) ?? [];
    if (level !== undefined) this.#checkpoint = { tokens: level.tokens, atMs: nowMs };
  }

  /** Answers how long to wait before the next. */
  async take(ready: ReadyQueue | undefined): Promise<number> {
    if (ready === undefined) throw new Error('there is no server');
    const answer = await ready.take(anyWork);
    switch (answer.kind) {
      case 'rebuild':
        await this.restore();
        return 0;
      case 'wait':
        return answer.waitMs ?? Number.POSITIVE_INFINITY;
      case 'taken':
        this.grants.push(...answer.entries.map(() => this.#run.clock.nowMs()));
        this.#taken.push(...answer.entries);
        if (this.#taken.length >= waiting / 2) await this.#refill(ready);
        return answer.waitMs ?? 0;
    }
  }

  async #refill(ready: ReadyQueue): Promise<void> {
    const taken = this.#taken;
    this.#taken = [];
    await Promise.all([
      ready.finish(taken.map(finished)),
      ready.offer(taken.map(() => this.#offer())),
    ]);
  }

  #levels(): { bucket: string; tokens: number }[] {
    if (this.#checkpoint === null) return [];
    const { tokens, atMs } = this.#checkpoint;
    const ageMs = this.#run.clock.nowMs() - atMs;
    const left = tokensAfterLoss(this.#limit, { tokens, ageMs, isFinal: false });
    return [{ bucket: ownBucket(queue, 'requests'), tokens: left }];
  }

  #offer(): Offer {
    this.#offered += 1;
    return {
      taskId: firstIdAt(this.#offered),
      lane: { queue, taskType: 't', capabilities: [] },
      priority: 'medium',
      ageMs: 0,
      eligibleAtMs: this.#run.clock.nowMs(),
      seq: this.#offered,
      cost: {},
    };
  }
}
