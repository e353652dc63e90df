import type { Lane } from './lane.js';
import { canDo, offerSets, type Offer } from './offer.js';
import { refuseConflicts } from './setting-conflicts.js';
import type { WorkerGroup, Workforce } from './workforce.js';
import { workWaiting, type HeldUpBy, type LaneWaiting, type QueueRoom } from './work-waiting.js';

export interface ScalingSettings {
  readonly min: number;
  readonly max: number;
  /** Tasks at once of one worker that is asked for. */
  readonly concurrency: number;
  /** How often it is looked what is wanted, and how often somebody is asked. */
  readonly intervalMs: number;
  /** For so long fewer must have been enough before fewer are asked for. */
  readonly quietMs: number;
  /** What the workers that are asked for can do. */
  readonly offer: Offer;
}

export const defaultScalingSettings: ScalingSettings = {
  min: 0,
  max: 10,
  concurrency: 1_000,
  intervalMs: 5_000,
  quietMs: 60_000,
  offer: { taskTypes: null, queues: null, capabilities: null },
};

/** What is not given is the default. */
export function scalingSettings(given: Partial<ScalingSettings> = {}): ScalingSettings {
  const settings = { ...defaultScalingSettings, ...given };
  refuseConflicts(scalingConflicts(settings));
  return settings;
}

export function scalingConflicts({ min, max }: Pick<ScalingSettings, 'min' | 'max'>): string[] {
  if (min <= max) return [];
  return [
    `scaleMin (${min}) must be at most scaleMax (${max}): there can't be more than the most.`,
  ];
}

export interface ScalingFacts {
  readonly lanes: readonly LaneWaiting[];
  readonly roomOf: (queue: string) => QueueRoom;
  readonly workforce: Workforce<WorkerGroup>;
  /** Of all that completed lately; null when none did. */
  readonly averageDurationMs: number | null;
}

export interface QueueWork {
  readonly queue: string;
  readonly due: number;
  readonly waiting: number;
  readonly heldUpBy: HeldUpBy | null;
}

export interface Demand {
  /** Workers there are. */
  readonly current: number;
  /** Workers that would be enough now. */
  readonly needed: number;
  readonly waiting: number;
  readonly freeSlots: number;
  /** Workers whose offers were not looked at. They count as able, so that `needed` is so many at least. */
  readonly unseen: number;
  readonly queues: readonly QueueWork[];
}

/**
 * How many workers the work that is due now needs. Work that waits for tokens, a pause, a circuit or
 * `max_concurrency` needs none, and neither does what the workers that are there get done before the
 * next look. Fewer are needed only by as many as are idle altogether. A step for each lane: there may be many lanes, and
 * many groups of workers that can do each.
 */
export function* demandOf(facts: ScalingFacts, settings: ScalingSettings): Generator<void, Demand> {
  const { offer, intervalMs, concurrency } = settings;
  const { workforce } = facts;
  const asked = offerSets(offer);
  const lanes = facts.lanes.filter(({ lane }) => canDo(asked, lane));
  const groups = [...workforce.sharing(offer), workforce.unseen];
  const work = workWaiting(lanes, facts.roomOf, intervalMs);
  const wanted = work.map(({ lane, waiting }) => {
    const { averageDurationMs } = facts.roomOf(lane.queue);
    return { lane, slots: waiting / turnsOf(averageDurationMs, intervalMs) };
  });
  const current = sum(groups.map(({ workers }) => workers));
  const freeSlots = sum(groups.map(({ free }) => free));
  const free = freeingSlots(groups, facts.averageDurationMs, intervalMs);
  const missing = yield* missingSlots(wanted, free, workforce);
  const spare = Math.max(0, freeSlots - sum(wanted.map(({ slots }) => slots)));
  // Those that are there may have other sizes than those that are asked for.
  const size = Math.max(1, sum(groups.map(({ capacity }) => capacity)) / Math.max(1, current));
  const change = missing > 0 ? missing / concurrency : -spare / size;
  return {
    current,
    needed: Math.max(0, current + Math.ceil(change)),
    waiting: sum(work.map(({ waiting }) => waiting)),
    freeSlots,
    unseen: workforce.unseen.workers,
    queues: byQueue(work),
  };
}

/** What was needed lately, the latest last; only what no later look surpassed. */
export type Past = readonly { readonly atMs: number; readonly needed: number }[];

/**
 * More at once, fewer only when fewer were enough for all of the quiet time. Who looks for the first
 * time knows nothing of that time, and takes what is there for needed.
 */
export function desiredAfter(
  past: Past | null,
  { current, needed }: Demand,
  settings: ScalingSettings,
  nowMs: number,
): { readonly desired: number; readonly past: Past } {
  const within = (count: number) => Math.min(settings.max, Math.max(settings.min, count));
  const before = past ?? [{ atMs: nowMs, needed: within(current) }];
  const now = { atMs: nowMs, needed: within(needed) };
  const kept = before.filter(
    (each) => each.atMs > nowMs - settings.quietMs && each.needed > now.needed,
  );
  const [most = now] = kept;
  return { desired: within(most.needed), past: [...kept, now] };
}

const longestRestMs = 300_000;

/** How long nobody is asked after so many failures in a row; `random` is in [0, 1). */
export function restMs(failures: number, intervalMs: number, random: number): number {
  const grown = Math.min(intervalMs * 2 ** failures, Math.max(intervalMs, longestRestMs));
  return grown * (0.75 + random / 4);
}

/** How many tasks one slot gets done before the next look. */
function turnsOf(averageDurationMs: number | null, intervalMs: number): number {
  if (averageDurationMs === null) return 1;
  return Math.max(1, intervalMs / Math.max(1, averageDurationMs));
}

/** Slots that each group has left. */
type Slots = Map<WorkerGroup, number>;

/** A slot whose task ends long before the next look is nearly as good as a free one. */
function freeingSlots(
  groups: readonly WorkerGroup[],
  averageDurationMs: number | null,
  intervalMs: number,
): Slots {
  const freeing = 1 - 1 / turnsOf(averageDurationMs, intervalMs);
  return new Map(groups.map((group) => [group, group.free + group.busy * freeing]));
}

/** A slot goes to the first lane that can use it: the best assignment is not worth its search. */
function* missingSlots(
  wanted: readonly { readonly lane: Lane; readonly slots: number }[],
  left: Slots,
  workforce: Workforce<WorkerGroup>,
): Generator<void, number> {
  let missing = 0;
  for (const { lane, slots } of wanted) {
    const open = takeSlots(workforce.ableTo(lane), left, slots);
    missing += takeSlots([workforce.unseen], left, open);
    yield;
  }
  return missing;
}

/** How many are still missing. */
function takeSlots(groups: Iterable<WorkerGroup>, left: Slots, slots: number): number {
  let open = slots;
  for (const group of groups) {
    if (open === 0) break;
    const used = Math.min(open, left.get(group) ?? 0);
    if (used > 0) left.set(group, (left.get(group) ?? 0) - used);
    open -= used;
  }
  return open;
}

function byQueue(work: ReturnType<typeof workWaiting>): QueueWork[] {
  const queues = new Map<string, QueueWork>();
  for (const { lane, due, waiting, heldUpBy } of work) {
    const { queue } = lane;
    const known = queues.get(queue) ?? { queue, due: 0, waiting: 0, heldUpBy: null };
    queues.set(queue, {
      queue,
      due: known.due + due,
      waiting: known.waiting + waiting,
      heldUpBy: known.heldUpBy ?? heldUpBy,
    });
  }
  return [...queues.values()];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
