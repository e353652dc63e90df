import { Counter, Gauge, type Registry } from 'prom-client';
import type { ReplicaStatus } from '../ports.js';

/** Which server leads, and how calls to it fare. Without Redis only. */
export function showReplica(registry: Registry): (status: ReplicaStatus) => void {
  const registers = [registry];
  const leads = new Gauge({
    name: 'sluice_leads',
    help: 'Whether this server leads: 1 or 0',
    registers,
  });
  const changes = new Counter({
    name: 'sluice_leader_changes_total',
    help: 'Changes of the leader that this server saw',
    registers,
  });
  const calls = new Counter({
    name: 'sluice_leader_calls_total',
    help: 'Calls of this server to the leader, by outcome',
    labelNames: ['outcome'],
    registers,
  });
  const trip = new Gauge({
    name: 'sluice_leader_round_trip_seconds',
    help: 'Of the last thousand calls to the leader',
    labelNames: ['quantile'],
    registers,
  });
  const told = { changes: 0, answered: 0, lost: 0 };
  return (status) => {
    leads.set(status.leads ? 1 : 0);
    changes.inc(status.leader_changes - told.changes);
    calls.inc({ outcome: 'answered' }, status.calls_answered - told.answered);
    calls.inc({ outcome: 'lost' }, status.calls_lost - told.lost);
    told.changes = status.leader_changes;
    told.answered = status.calls_answered;
    told.lost = status.calls_lost;
    const { median, p99 } = status.round_trip_ms;
    if (median !== null) trip.set({ quantile: '0.5' }, median / 1000);
    if (p99 !== null) trip.set({ quantile: '0.99' }, p99 / 1000);
  };
}
