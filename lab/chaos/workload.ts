import type { Priority } from '../../src/domain/priority.js';
import type { QueueDraft } from '../../src/protocol/queues-api.js';
import type { TaskDraft } from '../../src/protocol/tasks-api.js';
import { seededRandom } from '../shared/measure.js';
import type { RateBound, SlotBound } from './history.js';

/** What one call submits, and what is to become of it. */
export interface Unit {
  readonly tasks: readonly PlannedTask[];
  /** Members one by one, each when the one before was acknowledged; others in one call. */
  readonly workflowId: string | null;
}

export interface PlannedTask {
  readonly draft: TaskDraft & { readonly idempotencyKey: string };
  readonly fails: number;
  /** So long after it was acknowledged; null: never. */
  readonly cancelAfterMs: number | null;
}

const limited = { rate: 40, perSeconds: 10, burst: null };
const bursty = { rate: 20, perSeconds: 10, burst: 10 };
const narrow = 3;
/** Its max_concurrency is lowered while Redis hangs, and raised again. */
export const retuned = { queue: 'retuned', wide: 8, tight: 1 };
/** What fails here says that the service wants fewer calls, which stops the queue for a second. */
const pushedBack = 'pushed-back';

export const queues: Readonly<Record<string, QueueDraft>> = {
  limited: { limits: [{ unit: 'requests', ...limited }] },
  bursty: { limits: [{ unit: 'requests', ...bursty }] },
  narrow: { maxConcurrency: narrow },
  [retuned.queue]: { maxConcurrency: retuned.wide },
};

/** What has gathered behind the limits would take minutes more. */
export const lifted: typeof queues = {
  limited: {},
  bursty: {},
  [retuned.queue]: { maxConcurrency: retuned.wide },
};

export const rateBounds: readonly RateBound[] = Object.entries({ limited, bursty }).map(
  ([queue, { rate, perSeconds, burst }]) => ({
    queue,
    most: rate + (burst ?? 0),
    windowMs: perSeconds * 1000,
    burst,
  }),
);

export const slotBounds: readonly SlotBound[] = [
  { queue: 'narrow', most: narrow },
  { queue: retuned.queue, most: retuned.wide },
];

/** A task that is killed twenty times is still run: the dead letters stay empty. */
const maxRetries = 20;
const timeoutSeconds = 60;
const priorities: readonly Priority[] = ['high', 'medium', 'low'];

interface Sort {
  readonly queue: string;
  readonly leastMs: number;
  readonly mostMs: number;
  /** How often it is drawn, against the others. */
  readonly weight: number;
}

/** Of those with a limit more than it lets through: only then would a lost level show. */
const sorts: readonly Sort[] = [
  { queue: 'plain-0', leastMs: 5, mostMs: 50, weight: 18 },
  { queue: 'plain-1', leastMs: 5, mostMs: 200, weight: 18 },
  { queue: 'slow', leastMs: 500, mostMs: 4_000, weight: 12 },
  { queue: 'limited', leastMs: 5, mostMs: 100, weight: 40 },
  { queue: 'bursty', leastMs: 5, mostMs: 100, weight: 30 },
  { queue: 'narrow', leastMs: 20, mostMs: 300, weight: 18 },
  { queue: retuned.queue, leastMs: 50, mostMs: 500, weight: 24 },
  { queue: pushedBack, leastMs: 5, mostMs: 100, weight: 4 },
];

/** Endless, and the same for the same seed. */
export class Workload {
  readonly #random: () => number;
  #drawn = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed + 1_000_000);
  }

  next(): Unit {
    this.#drawn += 1;
    const name = `u${this.#drawn}`;
    const sort = this.#random();
    if (sort < 0.06) return this.#workflow(name);
    const length = sort < 0.2 ? 2 + Math.floor(this.#random() * 8) : 1;
    return {
      tasks: Array.from({ length }, (_, index) => this.#single(`${name}-${index}`)),
      workflowId: null,
    };
  }

  #single(key: string): PlannedTask {
    const { queue, leastMs, mostMs } = this.#drawSort();
    const delaySeconds = this.#random() < 0.08 ? 1 + Math.floor(this.#random() * 3) : null;
    return this.#planned(key, queue, leastMs + this.#random() * (mostMs - leastMs), {
      priority: priorities[Math.floor(this.#random() * priorities.length)] ?? 'medium',
      ...(delaySeconds === null ? {} : { delaySeconds }),
    });
  }

  #workflow(name: string): Unit {
    const length = 3 + Math.floor(this.#random() * 4);
    const workflowId = `workflow-${name}`;
    const tasks = Array.from({ length }, (_, index) =>
      this.#planned(`${name}-${index}`, 'steps', 20 + this.#random() * 400, {
        workflowId,
        workflowOnFailure: 'continue',
      }),
    );
    return { tasks, workflowId };
  }

  #planned(key: string, queue: string, ms: number, more: Partial<TaskDraft>): PlannedTask {
    const fails = this.#random() < 0.08 ? 1 + Math.floor(this.#random() * 2) : 0;
    const pushes_back = queue === pushedBack;
    const cancelAfterMs = this.#random() < 0.05 ? this.#random() * 2_000 : null;
    const draft = {
      taskType: 'step',
      queue,
      parameters: { ms: Math.round(ms), fails, pushes_back },
      maxRetries,
      timeoutSeconds,
      idempotencyKey: key,
      ...more,
    };
    return { draft, fails, cancelAfterMs };
  }

  #drawSort(): Sort {
    let left = this.#random() * sorts.reduce((sum, { weight }) => sum + weight, 0);
    const drawn = sorts.find(({ weight }) => (left -= weight) < 0);
    return drawn ?? { queue: 'plain-0', leastMs: 5, mostMs: 50, weight: 1 };
  }
}
