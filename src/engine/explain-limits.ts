import type { TaskId } from '../domain/ids.js';
import { instantIn } from '../domain/instant.js';
import { countText, limitText } from '../domain/limit-text.js';
import { effectivePriority, rankOf, type Ageing } from '../domain/priority.js';
import type { Cost, QueueSettings } from '../domain/queue-settings.js';
import {
  bucketShape,
  costIn,
  requestUnit,
  sharedBucket,
  tokensAt,
} from '../domain/token-bucket.js';
import type { WaitReason } from '../protocol/tasks-api.js';
import type { LiveBucket } from '../ready/ready-queue.js';
import type { ReadyRow } from '../store/task-row.js';
import { bucketWaitMs } from './queue-view.js';

/** The limits of a task's queue, as they are now. */
export interface LimitsNow {
  readonly queue: string;
  readonly settings: QueueSettings;
  readonly buckets: readonly LiveBucket[];
  readonly nowMs: number;
}

interface Waiting {
  readonly taskId: TaskId;
  readonly cost: Cost;
}

/** A reason for each limit that does not hold what the task costs. */
export function shortReasons({ cost }: { readonly cost: Cost }, now: LimitsNow): WaitReason[] {
  return shortOf(cost, now).map(({ detail, ...until }) => ({
    kind: 'rate_limit',
    detail: `It costs ${detail}.`,
    ...until,
  }));
}

/** Nothing overtakes the first task of a queue that waits for its tokens. Which one that is, and what it costs, may be secret. */
export function heldUpReasons(
  task: { readonly taskId: TaskId },
  head: Waiting | null,
  now: LimitsNow,
  isSecret: boolean,
): WaitReason[] {
  if (head === null || head.taskId === task.taskId) return [];
  return shortOf(head.cost, now).map(({ detail, ...until }) => ({
    kind: 'rate_limit',
    detail: isSecret
      ? 'Another task comes before it, is not overtaken, and waits for a limit.'
      : `Task ${head.taskId} comes before it, is not overtaken, and costs ${detail}.`,
    ...until,
  }));
}

/** The first tasks of all windows, in the order in which they are taken. */
export function inOrder(heads: readonly ReadyRow[], ageing: Ageing): ReadyRow[] {
  const rank = ({ priority, ageMs }: ReadyRow) =>
    rankOf(effectivePriority(priority, ageMs, ageing));
  return heads.toSorted(
    (a, b) => rank(a) - rank(b) || a.eligibleAtMs - b.eligibleAtMs || a.seq - b.seq,
  );
}

/** A misspelt unit is no mistake that could be refused: a limit for it may come later. */
export function uncountedNotes(cost: Cost, { queue, settings, buckets }: LimitsNow): string[] {
  const known = new Set(buckets.map(({ bucket }) => bucket));
  // A process that does not serve does not know which units the shared limits count.
  const isUnknown = settings.limits.some(
    (limit) => 'use' in limit && !known.has(sharedBucket(limit.use)),
  );
  if (isUnknown) return [];
  const own = settings.limits.flatMap((limit) => ('use' in limit ? [] : [limit.unit]));
  const counted = new Set([...own, ...buckets.map(({ limit }) => limit.unit)]);
  const uncounted = Object.keys(cost).filter((unit) => !counted.has(unit));
  return uncounted.map(
    (unit) => `It costs ${amount(unit, cost)}, but no limit of queue ${queue} counts ${unit}.`,
  );
}

function shortOf(cost: Cost, now: LimitsNow): { detail: string; until?: Date }[] {
  return now.buckets.flatMap((bucket) => {
    const waitMs = bucketWaitMs(bucket, costIn(bucket.limit.unit, cost));
    if (waitMs === 0) return [];
    const until = instantIn(now.nowMs, waitMs);
    return [{ detail: shortage(bucket, cost, now), ...(until === null ? {} : { until }) }];
  });
}

/** … 1,200 tokens; 312.5 are left of the 30,000 tokens a minute of queue gpt-4o. */
function shortage(bucket: LiveBucket, cost: Cost, now: LimitsNow): string {
  const { limit, tokens } = bucket;
  const shape = bucketShape(limit);
  const capacity = tokensAt(shape, shape.capacity);
  const isDearer = costIn(limit.unit, cost) > capacity;
  const atOnce = isDearer ? `, and goes when the limit is full with ${countText(capacity)}` : '';
  const left = tokens < 0 ? `${countText(-tokens)} are owed` : `${countText(tokens)} are left`;
  return `${amount(limit.unit, cost)}${atOnce}; ${left} of the ${limitText(limit)} of ${ownerOf(bucket, now)}`;
}

function amount(unit: string, cost: Cost): string {
  return unit === requestUnit ? 'one request' : `${countText(costIn(unit, cost))} ${unit}`;
}

function ownerOf({ bucket }: LiveBucket, { queue, settings }: LimitsNow): string {
  const shared = settings.limits.find(
    (limit) => 'use' in limit && sharedBucket(limit.use) === bucket,
  );
  return shared !== undefined && 'use' in shared
    ? `the shared limit ${shared.use}`
    : `queue ${queue}`;
}
