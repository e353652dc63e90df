import type { Lane } from './lane.js';
import type { Cost, RateLimit } from './queue-settings.js';
import { bucketShape, costIn, levelAt, neededLevel } from './token-bucket.js';

/** Due tasks of one lane that nobody has taken. */
export interface LaneWaiting {
  readonly lane: Lane;
  readonly due: number;
  /** Of the first of them; the others are taken to cost the same. */
  readonly cost: Cost;
}

/** How much a queue lets go, whoever there is to take it. */
export interface QueueRoom {
  /** Not null: nothing at all. */
  readonly stoppedBy: 'paused' | 'circuit_open' | null;
  /** What is left of `max_concurrency`, or of a circuit's probes; null: no bound. */
  readonly slots: number | null;
  readonly buckets: readonly BucketRoom[];
  /** Of those that completed lately; null when none did. */
  readonly averageDurationMs: number | null;
}

export interface BucketRoom {
  readonly bucket: string;
  readonly tokens: number;
  readonly limit: RateLimit;
}

export type HeldUpBy = 'paused' | 'circuit_open' | 'rate_limit' | 'max_concurrency';

export interface LaneWork {
  readonly lane: Lane;
  readonly due: number;
  /** How many of them could start before the next look, if there were a worker for each. */
  readonly waiting: number;
  /** What holds up the others. */
  readonly heldUpBy: HeldUpBy | null;
}

/**
 * How many of each lane wait for nothing but a worker. What a queue or a limit lets go is shared by the
 * lanes that draw on it, so that nothing is counted twice.
 */
export function workWaiting(
  lanes: readonly LaneWaiting[],
  roomOf: (queue: string) => QueueRoom,
  untilNextLookMs: number,
): LaneWork[] {
  const slotsLeft = new Map<string, number>();
  const budgets = new Budgets(untilNextLookMs);
  return lanes.map(({ lane, due, cost }) => {
    const room = roomOf(lane.queue);
    if (room.stoppedBy !== null) return { lane, due, waiting: 0, heldUpBy: room.stoppedBy };
    const slots = slotsLeft.get(lane.queue) ?? room.slots ?? Infinity;
    const granted = Math.min(...room.buckets.map((bucket) => budgets.grants(bucket, cost)));
    const waiting = Math.max(0, Math.min(due, slots, granted));
    slotsLeft.set(lane.queue, slots - waiting);
    for (const bucket of room.buckets) budgets.spend(bucket, cost, waiting);
    const heldUpBy = granted < slots ? 'rate_limit' : 'max_concurrency';
    return { lane, due, waiting, heldUpBy: waiting < due ? heldUpBy : null };
  });
}

/** What buckets hold, and gain until the next look: whoever starts then needs a worker by then. */
class Budgets {
  readonly #forMs: number;
  readonly #levels = new Map<string, { now: number; soon: number }>();

  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  grants(room: BucketRoom, cost: Cost): number {
    const shape = bucketShape(room.limit);
    const { now, soon } = this.#levelsOf(room);
    const each = costIn(room.limit.unit, cost);
    if (each === 0) return soon >= 0 ? Infinity : 0;
    // What costs more than the bucket holds goes when it is full.
    const atLeast = now >= neededLevel(shape, each) ? 1 : 0;
    return Math.max(atLeast, Math.floor(soon / (each * shape.token)));
  }

  spend(room: BucketRoom, cost: Cost, count: number): void {
    const price = count * costIn(room.limit.unit, cost) * bucketShape(room.limit).token;
    const { now, soon } = this.#levelsOf(room);
    this.#levels.set(room.bucket, { now: now - price, soon: soon - price });
  }

  #levelsOf({ bucket, tokens, limit }: BucketRoom): { now: number; soon: number } {
    const shape = bucketShape(limit);
    const level = levelAt(shape, tokens);
    return this.#levels.get(bucket) ?? { now: level, soon: level + this.#forMs * shape.gain };
  }
}
