import type { AlertView } from '../../protocol/alerts-api.js';
import type { QueueView } from '../../protocol/queues-api.js';
import type { Attention, Statistics } from '../../protocol/statistics-api.js';
import { pauseText } from '../queue-text.js';
import { readableSeconds } from '../readable.js';

const maxAlertsNamed = 5;
const maxQueuesNamed = 5;
const longWaitSeconds = 60;

interface Looked {
  readonly statistics: Statistics;
  readonly attention: Attention;
  readonly alerts: readonly AlertView[];
}

/** What a person should look at, in words. Empty: all is well. */
export function findAttention({ statistics, attention, alerts }: Looked): string[] {
  return [
    ...ofAlerts(alerts),
    ...ofWorkers(statistics),
    ...ofSuspended(attention),
    ...ofWaiting(statistics),
    ...ofQueues(attention),
  ];
}

function ofAlerts(alerts: readonly AlertView[]): string[] {
  const firing = alerts.filter(({ state }) => state === 'firing');
  const named = firing
    .slice(0, maxAlertsNamed)
    .map(({ name, severity, summary }) => `${name} (${severity}): ${summary}`);
  const further = firing.length - named.length;
  const are = further === 1 ? 'alert' : 'alerts';
  return further === 0 ? named : [...named, `… and ${further} more ${are}: sluice alerts`];
}

function ofWorkers({ queues, workers }: Statistics): string[] {
  const waiting = queues.high.depth + queues.medium.depth + queues.low.depth;
  if (workers.active > 0 || waiting === 0) return [];
  const wait = waiting === 1 ? 'task waits' : 'tasks wait';
  return [`No worker is active, and ${waiting.toLocaleString('en')} ${wait}.`];
}

function ofWaiting({ queues: { high } }: Statistics): string[] {
  const { oldestAgeSeconds } = high;
  if (oldestAgeSeconds === null || oldestAgeSeconds < longWaitSeconds) return [];
  return [`The oldest task of high priority has waited ${readableSeconds(oldestAgeSeconds)}.`];
}

function ofSuspended({ workers: { items, totalCount } }: Attention): string[] {
  const [first] = items;
  if (first === undefined) return [];
  const others = totalCount === 1 ? '' : `, and ${(totalCount - 1).toLocaleString('en')} more`;
  return [
    `Suspended, since they fail where others succeed: ${first.name ?? first.workerId}${others}`,
  ];
}

function ofQueues({ queues: { items, totalCount } }: Attention): string[] {
  const named = items.slice(0, maxQueuesNamed).map((queue) => `${queue.name}: ${whyOf(queue)}`);
  const further = totalCount - named.length;
  if (further <= 0) return named;
  return [
    ...named,
    `… and ${further.toLocaleString('en')} more ${further === 1 ? 'queue' : 'queues'}`,
  ];
}

/** Why the server lists it. */
function whyOf(queue: QueueView): string {
  if (!queue.inForce) return 'settings are not in force: Redis was away';
  const { oldestAgeSeconds } = queue.live;
  return pauseText(queue) || `its oldest task has waited ${readableSeconds(oldestAgeSeconds ?? 0)}`;
}
