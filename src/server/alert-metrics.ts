import { Gauge, Registry } from 'prom-client';
import type { AlertSnapshot } from '../domain/alerts/snapshot.js';
import type { Metrics } from './ports.js';

export interface AlertNumbers {
  /** Null: no server evaluates alerts. */
  findAlertSnapshot(): Promise<AlertSnapshot | null>;
}

/** Error codes are users' own: only the most frequent ones have a line. */
const maxReasons = 10;

/**
 * The metrics and, behind them, what the alert rules read that is not among them. It is what the evaluating server
 * measured last, so that a scrape costs one row; without an evaluating server they are absent.
 */
export function withAlertMetrics(metrics: Metrics, numbers: AlertNumbers): Metrics {
  const registry = new Registry();
  const show = showNumbers(registry);
  return {
    contentType: metrics.contentType,
    text: async () => {
      show(await numbers.findAlertSnapshot());
      return `${await metrics.text()}\n${await registry.metrics()}`;
    },
  };
}

function showNumbers(registry: Registry): (snapshot: AlertSnapshot | null) => void {
  const plain: Gauge[] = [];
  const labelled = <Label extends string>(name: string, help: string, label: Label) =>
    new Gauge({ name: `sluice_${name}`, help, labelNames: [label], registers: [registry] });
  const gauge = (name: string, help: string) => {
    const made = new Gauge({ name: `sluice_${name}`, help, registers: [registry] });
    plain.push(made);
    return made;
  };
  const oldest = labelled(
    'oldest_waiting_seconds',
    'Age of the oldest task, as submitted',
    'priority',
  );
  const p95 = gauge('waiting_p95_seconds', 'Age that one in twenty of the waiting tasks passes');
  const unclaimed = gauge('unclaimed_seconds', 'Age of a ready task while nothing is claimed');
  const late = gauge('scheduled_late_seconds', 'How late a task with a time is');
  const conflicts = gauge(
    'recent_idempotency_conflicts',
    'Submits of the last 5 minutes whose idempotency key belongs to a different task',
  );
  const idle = gauge('workers_idle', 'Active workers without a task');
  const lost = gauge('workers_lost', 'Workers that fell silent in the last 5 minutes');
  const missing = gauge('scaling_missing_workers', 'Workers that were asked for and are not there');
  const failing = gauge('scaling_failing_seconds', 'For how long asking for workers has failed');
  const webhook = gauge('webhook_failing_seconds', 'For how long a webhook message has failed');
  const patterns = gauge(
    'dead_letter_new_patterns',
    'Patterns of dead letters first seen in the last 10 minutes',
  );
  const replayable = gauge('dead_letters_replayable', 'Dead letters that a replay may help');
  const dead = labelled('dead_letters', 'Dead letters by their most frequent codes', 'reason');

  return (snapshot) => {
    oldest.reset();
    dead.reset();
    // Not `reset`, after which a gauge without labels says 0.
    for (const each of plain) each.remove();
    if (snapshot === null) return;
    oldest.set({ priority: 'high' }, snapshot.oldestHighSeconds);
    oldest.set({ priority: 'medium' }, snapshot.oldestMediumSeconds);
    oldest.set({ priority: 'low' }, snapshot.oldestLowSeconds);
    p95.set(snapshot.ageP95Seconds);
    unclaimed.set(snapshot.unclaimedSeconds);
    late.set(snapshot.scheduledLateSeconds);
    conflicts.set(snapshot.idempotencyConflictsLast5Minutes);
    idle.set(snapshot.idleWorkers);
    lost.set(snapshot.lostWorkers);
    missing.set(snapshot.missingWorkers);
    failing.set(snapshot.scaleOutFailingSeconds);
    webhook.set(snapshot.webhookFailingSeconds);
    patterns.set(snapshot.newDeadLetterPatterns);
    replayable.set(snapshot.replayableDeadLetters);
    for (const { label, value } of snapshot.deadLetterReasons.slice(0, maxReasons)) {
      dead.set({ reason: label }, value);
    }
  };
}
