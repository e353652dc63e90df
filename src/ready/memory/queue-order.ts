import type { PriorityRank } from '../../domain/priority.js';
import type { AgeingTable } from './ageing-table.js';

/** What an entry is ordered by inside its queue. */
export interface Ordered {
  readonly rank: PriorityRank;
  /** In the ready queue's own time: what ageing counts from. */
  readonly eligibleAt: number;
  /** In the time of Postgres: what the order goes by. */
  readonly orderedAt: number;
  readonly seq: number;
}

/** The order inside a queue: by urgency now, then the oldest first. */
export function isTakenBefore(ageing: AgeingTable, a: Ordered, b: Ordered, nowMs: number): boolean {
  const levelA = ageing.levelOf(a.rank, nowMs - a.eligibleAt);
  const levelB = ageing.levelOf(b.rank, nowMs - b.eligibleAt);
  return levelA === levelB ? isOlder(a, b) : levelA < levelB;
}

export function isOlder(a: Ordered, b: Ordered): boolean {
  return a.orderedAt === b.orderedAt ? a.seq < b.seq : a.orderedAt < b.orderedAt;
}
