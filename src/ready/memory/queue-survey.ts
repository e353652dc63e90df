import { priorityOf, type Priority, type PriorityRank } from '../../domain/priority.js';
import { levelOf, type Queue } from './ready-lane.js';
import type { HeldBackBy, NoteAge, SurveyedQueue, Waiting } from '../ready-queue.js';

/** Ageing and the oldest are looked for in so many lanes: of more, both are lower bounds. */
const lanesSeen = 250;
/** Ages that are told of each window. */
const sampled = 8;

/** What a lane costs beside an entry of it. */
const stepsOfLane = 5;

const ranks: readonly PriorityRank[] = [0, 1, 2];

/** Of about 0.3 µs each: a survey looks at the lanes, and at each of their entries that has aged. */
export function surveySteps(queue: Queue): number {
  return 1 + stepsOfLane * Math.min(queue.laneCount, lanesSeen) + queue.waiting;
}

export function surveyQueue(queue: Queue, nowMs: number, noteAge: NoteAge): SurveyedQueue {
  for (const lane of queue.lanes(lanesSeen)) {
    lane.sample(sampled, (entry, count) => {
      noteAge(priorityOf(levelOf(entry, nowMs)), nowMs - entry.eligibleAt, count);
    });
  }
  return {
    queue: queue.name,
    depth: { high: queue.waitingOf(0), medium: queue.waitingOf(1), low: queue.waitingOf(2) },
    waiting: waitingIn(queue, nowMs),
    running: queue.running,
    heldBackBy: queue.waiting === 0 ? null : heldBackBy(queue, nowMs),
  };
}

/**
 * A step for each lane, and one for each entry that has aged where others of its window have not: those
 * stand together at the top of their heap.
 */
export function waitingIn(queue: Queue, nowMs: number): Record<Priority, Waiting> {
  const counts = ranks.map((rank) => queue.waitingOf(rank));
  const oldest = ranks.map(() => Number.POSITIVE_INFINITY);
  for (const lane of queue.lanes(lanesSeen)) {
    for (const rank of ranks) {
      lane.countLevels(rank, nowMs, (level, count, eligibleAt) => {
        counts[rank] = (counts[rank] ?? 0) - count;
        counts[level] = (counts[level] ?? 0) + count;
        oldest[level] = Math.min(oldest[level] ?? eligibleAt, eligibleAt);
      });
    }
  }
  const at = (rank: PriorityRank): Waiting => {
    const eligibleAt = oldest[rank] ?? Number.POSITIVE_INFINITY;
    const oldestAgeMs = eligibleAt < Number.POSITIVE_INFINITY ? nowMs - eligibleAt : null;
    return { count: counts[rank] ?? 0, oldestAgeMs };
  };
  return { high: at(0), medium: at(1), low: at(2) };
}

function heldBackBy(queue: Queue, nowMs: number): HeldBackBy | null {
  const closedBy = queue.closedBy(nowMs);
  if (closedBy !== null || !queue.hasLimits) return closedBy;
  const waits = queue.lanes(lanesSeen).every((lane) => {
    const head = lane.head(nowMs);
    if (head === null) return true;
    return queue.opensAtFor(head, nowMs) > nowMs || queue.sharedOpensAt(head, nowMs) > nowMs;
  });
  return waits ? 'rate_limit' : null;
}
