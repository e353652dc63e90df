import type { AlertRule } from './rule.js';
import { completed, failed, gauge, increase, retried } from './twins.js';

const analysis = [
  'sluice dlq analysis',
  'which errors tasks ended with, how many and since when',
] as const;
const series = [
  "curl 'http://127.0.0.1:7700/api/v1/series?metric=completed,failed,retried'",
  'when it began; add &queue= for one queue',
] as const;
const circuits = ['sluice queues', 'which circuits are open, and until when'] as const;

/** One failure of two attempts is no rate. */
const leastAttempts = 10;

function share(part: number, whole: number): number | null {
  return whole < leastAttempts ? null : part / whole;
}

const failureTwin = (range: '1m' | '5m') => (threshold: number) =>
  `${failed(range)} / (${failed(range)} + ${completed(range)}) > ${threshold}` +
  ` and on() ${failed(range)} + ${completed(range)} >= ${leastAttempts}`;

/** Attempts fail, or the services behind them do. */
export const failureRules = {
  failure_rate: {
    severity: 'critical',
    unit: 'share',
    threshold: 0.25,
    forSeconds: 300,
    bad: 'above',
    meaning: 'Many of the attempts of the last minute failed, and it does not stop.',
    value: ({ failedLastMinute, completedLastMinute }) =>
      share(failedLastMinute, failedLastMinute + completedLastMinute),
    twin: failureTwin('1m'),
    look: [analysis, series, circuits],
    act: [
      'If one error code leads, its message names the cause: a service, a key, an input.',
      'If a release came before it, roll the workers back.',
      'To stop the damage while you look: `sluice pause QUEUE`. Nothing is lost by that.',
    ],
  },
  failure_rate_elevated: {
    severity: 'warning',
    unit: 'share',
    threshold: 0.1,
    forSeconds: 0,
    bad: 'above',
    meaning: 'More attempts than usual failed in the last 5 minutes.',
    value: ({ failedLast5Minutes, completedLast5Minutes }) =>
      share(failedLast5Minutes, failedLast5Minutes + completedLast5Minutes),
    twin: failureTwin('5m'),
    look: [analysis, series],
    act: [
      'Find the queue or task type that fails, and its error code. Retries cover short trouble.',
    ],
  },
  retry_rate: {
    severity: 'warning',
    unit: 'share',
    threshold: 0.15,
    forSeconds: 0,
    bad: 'above',
    meaning: 'There were many retries for the completions of the last 5 minutes.',
    value: ({ retriedLast5Minutes, completedLast5Minutes }) =>
      retriedLast5Minutes + completedLast5Minutes < leastAttempts
        ? null
        : retriedLast5Minutes / Math.max(1, completedLast5Minutes),
    twin: (threshold) =>
      `${retried('5m')} / clamp_min(${completed('5m')}, 1) > ${threshold}` +
      ` and on() ${retried('5m')} + ${completed('5m')} >= ${leastAttempts}`,
    look: [series, analysis],
    act: [
      'Time-outs: raise `timeout_seconds` of the type, or find what became slow.',
      'A service that answers "slow down" should be a limit: `sluice limit QUEUE --rpm N`.',
    ],
  },
  circuits_open: {
    severity: 'warning',
    unit: 'circuits',
    threshold: 5,
    forSeconds: 0,
    bad: 'above',
    meaning: 'Many queues are stopped because their services push back.',
    value: ({ openCircuits }) => openCircuits,
    twin: (threshold) => `count(max by (queue) (sluice_circuit_state) == 2) > ${threshold}`,
    look: [circuits, ['curl http://127.0.0.1:7700/api/v1/queues/QUEUE', 'why its circuit is open']],
    act: [
      'If they share a service or an API key, look at its status page, its quota and its bill.',
      'Nothing needs to be done for them to resume: each circuit tries its service again by itself.',
    ],
  },
  assignment_timeouts: {
    severity: 'warning',
    unit: 'tasks',
    threshold: 5,
    forSeconds: 0,
    bad: 'above',
    meaning: 'In the last minute, several tasks were assigned to workers that did not start them.',
    value: ({ neverStartedLastMinute }) => neverStartedLastMinute,
    twin: (threshold) =>
      `${increase('sluice_task_assignment_timeouts_total', '1m')} > ${threshold}`,
    look: [['sluice workers', 'which workers hold tasks, and their event-loop delay']],
    act: [
      'Workers that prefetch took more than they can start: lower their prefetching or their concurrency.',
      'A blocked event loop starts nothing: look for synchronous work in the handlers.',
    ],
  },
  leases_lapsed: {
    severity: 'warning',
    unit: 'tasks',
    threshold: 1,
    forSeconds: 0,
    bad: 'above',
    meaning: 'In the last minute, attempts ended because their workers fell silent.',
    value: ({ lapsedLastMinute }) => lapsedLastMinute,
    twin: (threshold) => `${increase('sluice_leases_lapsed_total', '1m')} > ${threshold}`,
    look: [
      ['sluice workers', 'which workers are dead, and their host and version'],
      ['sluice tasks list --status queued', 'tasks that came back'],
    ],
    act: [
      'Look at the logs of those workers: out of memory, killed, or cut off from the server.',
      'A deploy that kills workers loses their attempts: let them drain on SIGTERM.',
    ],
  },
  idempotency_conflicts: {
    severity: 'info',
    unit: 'events',
    threshold: 0,
    forSeconds: 0,
    bad: 'above',
    meaning:
      'In the last 5 minutes, a submitter used an idempotency key again for a different task; it was refused with 409.',
    value: ({ idempotencyConflictsLast5Minutes }) => idempotencyConflictsLast5Minutes,
    twin: (threshold) => `${gauge('sluice_recent_idempotency_conflicts')} > ${threshold}`,
    look: [series],
    act: ['The submitter makes its keys of too little. A key must name the work, with its input.'],
  },
  webhook_undeliverable: {
    severity: 'warning',
    unit: 'seconds',
    threshold: 300,
    forSeconds: 0,
    bad: 'above',
    meaning: 'A webhook message is refused or not answered.',
    value: ({ webhookFailingSeconds }) => webhookFailingSeconds,
    twin: (threshold) => `${gauge('sluice_webhook_failing_seconds')} > ${threshold}`,
    look: [
      ['sluice alerts', 'what the webhook would have told'],
      ['grep webhook server.log', 'what the receiver answered; the server logs it once'],
    ],
    act: [
      'Repair the receiver. Messages wait in Postgres for 3 days, and are delivered in order when it answers 2xx.',
      'If the address is wrong, change `--alert-webhook` and restart the server.',
      'If there is no webhook any more, the alert ends by itself within an hour.',
    ],
  },
} as const satisfies Record<string, AlertRule>;
