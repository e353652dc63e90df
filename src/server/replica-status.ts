import type { Engine } from '../engine/open-engine.js';
import type { ReplicaStatus } from './ports.js';

/** Null: embedded, or with Redis. */
export function replicaStatus({
  leadership,
  mailFlow,
}: Pick<Engine, 'leadership' | 'mailFlow'>): ReplicaStatus | null {
  if (leadership === null || mailFlow === null) return null;
  const { calls, delivery, followers, medianMs, p99Ms } = mailFlow;
  return {
    leads: leadership.leads,
    leader: leadership.leader,
    leader_since: leadership.since?.toISOString() ?? null,
    leader_changes: leadership.changes,
    followers,
    delivery,
    calls_answered: calls.answered,
    calls_lost: calls.lost,
    round_trip_ms: { median: medianMs, p99: p99Ms },
  };
}
