import { priorities, type Priority } from './priority.js';

/** Tasks, or a share of the ceiling. */
export type Threshold = number | `${number}%`;

/** How many tasks may be active, in all or of one queue, and from where less urgent ones are refused. */
interface CeilingSettings {
  readonly maxActive: number;
  readonly maxActiveMedium: Threshold;
  readonly maxActiveLow: Threshold;
}

/** For each priority the number of active tasks from which it is refused. */
export type Ceiling = Readonly<Record<Priority, number>>;

/** The scope of all queues together; any other is the name of a queue. */
export const allQueues = '';

export interface Applicant {
  readonly queue: string;
  readonly priority: Priority;
  /** Let in whatever the ceilings say, and counted. */
  readonly passesCeilings: boolean;
  /** Those with the same key are one task, which needs one place. */
  readonly key: string | null;
}

/** What may be active in a scope before a batch, so that all of the batch is let in. */
export interface Need {
  readonly scope: string;
  /** Null: any number. */
  readonly mostBefore: number | null;
}

export interface Standing {
  readonly active: number;
  /** Null: it has none. */
  readonly ceiling: Ceiling | null;
}

export interface ReachedCeiling {
  readonly scope: string;
  /** For this priority. */
  readonly limit: number;
  readonly active: number;
}

/** A ceiling leaves room for at least one task of any priority, or some could never come in. */
export function ceilingOf(settings: CeilingSettings): Ceiling {
  const { maxActive, maxActiveMedium, maxActiveLow } = settings;
  return {
    high: maxActive,
    medium: thresholdOf(maxActiveMedium, maxActive),
    low: thresholdOf(maxActiveLow, maxActive),
  };
}

/** A queue grants to each priority the same share of its own ceiling. */
export function ceilingOfQueue(maxActive: number, all: Ceiling): Ceiling {
  const share = (limit: number) => Math.max(1, Math.floor((maxActive * limit) / all.high));
  return { high: maxActive, medium: share(all.medium), low: share(all.low) };
}

function thresholdOf(threshold: Threshold, maxActive: number): number {
  const tasks =
    typeof threshold === 'number'
      ? threshold
      : Math.floor((maxActive * percentOf(threshold)) / 100);
  return Math.min(maxActive, Math.max(1, tasks));
}

/** NaN: it is no percentage. */
function percentOf(threshold: `${number}%`): number {
  return Number.parseFloat(threshold);
}

/** All that would contradict: less urgent tasks are never let in where more urgent ones are not. */
export function ceilingFaults(settings: CeilingSettings): string[] {
  const { maxActive, maxActiveMedium, maxActiveLow } = settings;
  const { medium, low } = ceilingOf(settings);
  const faults = [
    ...thresholdFaults('maxActiveMedium', maxActiveMedium, maxActive),
    ...thresholdFaults('maxActiveLow', maxActiveLow, maxActive),
  ];
  if (!Number.isInteger(maxActive) || maxActive < 1) {
    faults.push(`maxActive (${maxActive}) must be a whole number from 1.`);
  }
  if (low > medium) {
    faults.push(
      `maxActiveLow (${maxActiveLow}) must be at most maxActiveMedium (${maxActiveMedium}): ` +
        'less urgent tasks are refused first.',
    );
  }
  return faults;
}

function thresholdFaults(name: string, threshold: Threshold, maxActive: number): string[] {
  const isFine =
    typeof threshold === 'number'
      ? Number.isInteger(threshold) && threshold >= 1 && threshold <= maxActive
      : percentOf(threshold) > 0 && percentOf(threshold) <= 100;
  if (isFine) return [];
  return [
    `${name} (${threshold}) must be a share such as 80%, or a whole number of tasks from 1 to ` +
      `maxActive (${maxActive}).`,
  ];
}

/** Whose ceiling is not known has none. */
export function needsOf(
  applicants: readonly Applicant[],
  ceilings: ReadonlyMap<string, Ceiling>,
): Need[] {
  const counts = new Map<string, Counts>();
  for (const applicant of placesWanted(applicants)) {
    for (const scope of [allQueues, applicant.queue]) {
      let count = counts.get(scope);
      if (count === undefined) counts.set(scope, (count = noCounts()));
      if (applicant.passesCeilings) count.passing += 1;
      else count[applicant.priority] += 1;
    }
  }
  return [...counts].map(([scope, count]) => {
    const ceiling = ceilings.get(scope);
    return { scope, mostBefore: ceiling === undefined ? null : mostBefore(count, ceiling) };
  });
}

interface Counts extends Record<Priority, number> {
  passing: number;
}

function noCounts(): Counts {
  return { passing: 0, high: 0, medium: 0, low: 0 };
}

/** The more urgent come first: behind all of those, the last of each priority must still find room. */
function mostBefore(counts: Counts, ceiling: Ceiling): number | null {
  let most: number | null = null;
  let ahead = counts.passing;
  for (const priority of priorities) {
    ahead += counts[priority];
    if (counts[priority] === 0) continue;
    most = Math.min(most ?? Number.POSITIVE_INFINITY, ceiling[priority] - ahead);
  }
  return most;
}

/**
 * Who is let in: whoever passes all ceilings, then the more urgent before the less urgent, and of
 * equals whoever came first. For each applicant, in order, null, or the ceiling that it met.
 */
export function admit(
  applicants: readonly Applicant[],
  standings: ReadonlyMap<string, Standing>,
): (ReachedCeiling | null)[] {
  const letIn = new Map<string, number>();
  const met = new Map<Applicant, ReachedCeiling | null>();
  for (const applicant of byUrgency(placesWanted(applicants))) {
    const scopes = [allQueues, applicant.queue];
    const reached = applicant.passesCeilings ? null : reachedBy(applicant, standings, letIn);
    met.set(applicant, reached);
    if (reached !== null) continue;
    for (const scope of scopes) letIn.set(scope, (letIn.get(scope) ?? 0) + 1);
  }
  const firstOf = firstByKey(applicants);
  return applicants.map((applicant) => {
    const first = applicant.key === null ? applicant : (firstOf.get(applicant.key) ?? applicant);
    return met.get(first) ?? null;
  });
}

const unlimited: Standing = { active: 0, ceiling: null };

function reachedBy(
  { queue, priority }: Applicant,
  standings: ReadonlyMap<string, Standing>,
  letIn: ReadonlyMap<string, number>,
): ReachedCeiling | null {
  for (const scope of [queue, allQueues]) {
    const { ceiling, active: before } = standings.get(scope) ?? unlimited;
    if (ceiling === null) continue;
    const active = before + (letIn.get(scope) ?? 0);
    if (active >= ceiling[priority]) return { scope, limit: ceiling[priority], active };
  }
  return null;
}

function byUrgency(applicants: readonly Applicant[]): Applicant[] {
  const passing = applicants.filter(({ passesCeilings }) => passesCeilings);
  const others = priorities.map((priority) =>
    applicants.filter((one) => !one.passesCeilings && one.priority === priority),
  );
  return [...passing, ...others.flat()];
}

/** One for each key. */
function placesWanted(applicants: readonly Applicant[]): readonly Applicant[] {
  if (applicants.every(({ key }) => key === null)) return applicants;
  const firstOf = firstByKey(applicants);
  return applicants.filter((one) => one.key === null || firstOf.get(one.key) === one);
}

function firstByKey(applicants: readonly Applicant[]): Map<string, Applicant> {
  const firstOf = new Map<string, Applicant>();
  for (const applicant of applicants) {
    if (applicant.key !== null && !firstOf.has(applicant.key)) {
      firstOf.set(applicant.key, applicant);
    }
  }
  return firstOf;
}

export interface Drain {
  /** How many tasks must end until there is a place. */
  readonly mustEnd: number;
  /** Tasks that ended per second lately; null when it is not known. */
  readonly endedPerSecond: number | null;
  /** What the limits of the queue allow at most; null: it has none. */
  readonly fastestPerSecond: number | null;
  /** For so long nothing of it is taken. */
  readonly pausedForMs: number;
}

const leastRetrySeconds = 1;
const mostRetrySeconds = 3_600;
const unknownRetrySeconds = 5;
const jitterShare = 0.2;

/** When to come back: not all at once. `random` is in [0, 1). */
export function retryAfterSeconds(drain: Drain, random: number): number {
  const { mustEnd, endedPerSecond, fastestPerSecond, pausedForMs } = drain;
  const known = [endedPerSecond, fastestPerSecond].filter((rate) => rate !== null);
  const perSecond = known.length === 0 ? null : Math.min(...known);
  const drained = perSecond === null ? unknownRetrySeconds : Math.max(0, mustEnd) / perSecond;
  const seconds = Math.max(leastRetrySeconds, pausedForMs / 1000 + drained);
  return Math.min(mostRetrySeconds, seconds * (1 + jitterShare * random));
}
