import { otherNames } from '../other-names.js';
import type { AlertRule } from './rule.js';
import { completed, gauge, waiting } from './twins.js';

const queues = [
  'sluice queues',
  'which queues are deep, paused or limited, and their rates',
] as const;
const workers = ['sluice workers', 'which workers live, and how many tasks each holds'] as const;
const explain = [
  'sluice task TASK_ID --explain',
  'why one task does not run, and when it probably will',
] as const;
const oldest = [
  'sluice tasks list --status queued',
  'tasks that wait; take the id of an old one',
] as const;
const moreCapacity =
  'If all workers are busy and no limit is reached, start more workers (docs/scaling.md).';
const raiseLimit =
  'If a limit holds the queue up, raise it as far as the service allows: `sluice limit QUEUE --rpm N`.';
const resume = 'If somebody paused the queue and forgot it: `sluice resume QUEUE`.';

/** A completion rate of a system that does next to nothing says nothing. */
const leastCompletedInHour = 60;

/** Tasks wait too long, or too many do. */
export const waitingRules = {
  high_priority_depth: {
    severity: 'warning',
    unit: 'tasks',
    threshold: 1_000,
    forSeconds: 60,
    bad: 'above',
    meaning: 'More tasks of high priority wait than should ever wait.',
    value: ({ waitingHigh }) => waitingHigh,
    twin: (threshold) => `sum(max by (queue) (sluice_queue_depth{priority="high"})) > ${threshold}`,
    look: [queues, oldest, explain],
    act: [
      'If one submitter sends everything as high, make its tasks medium: high is for what a person waits for.',
      moreCapacity,
      raiseLimit,
    ],
  },
  high_priority_wait: {
    severity: 'critical',
    unit: 'seconds',
    threshold: 60,
    forSeconds: 0,
    bad: 'above',
    meaning: 'A task that was submitted with high priority has waited too long to be started.',
    value: ({ oldestHighSeconds }) => oldestHighSeconds,
    twin: (threshold) =>
      `${gauge('sluice_oldest_waiting_seconds{priority="high"}')} > ${threshold}`,
    look: [oldest, explain, workers],
    act: [resume, raiseLimit, moreCapacity],
  },
  low_priority_wait: {
    severity: 'warning',
    unit: 'seconds',
    threshold: 1_500,
    forSeconds: 0,
    bad: 'above',
    meaning: 'A task of low priority has waited nearly as long as ageing allows.',
    value: ({ oldestLowSeconds }) => oldestLowSeconds,
    twin: (threshold) => `${gauge('sluice_oldest_waiting_seconds{priority="low"}')} > ${threshold}`,
    look: [oldest, explain, queues],
    act: [
      'There is more work than capacity. Nothing is lost: at 30 minutes the task counts as high.',
      moreCapacity,
      raiseLimit,
    ],
  },
  ageing_promise_broken: {
    severity: 'critical',
    unit: 'tasks',
    threshold: 0,
    forSeconds: 60,
    bad: 'above',
    meaning: 'Tasks are older than the age that makes them high, and still wait.',
    value: ({ waitingBeyondAgeing }) => waitingBeyondAgeing,
    twin: (threshold) => `${gauge('sluice_starvation_risk_tasks')} > ${threshold}`,
    look: [oldest, explain, queues],
    act: [resume, raiseLimit, moreCapacity],
  },
  task_waiting_long: {
    severity: 'warning',
    unit: 'seconds',
    threshold: 3_600,
    forSeconds: 0,
    bad: 'above',
    meaning: 'A task that is due has waited for very long.',
    value: ({ oldestSeconds }) => oldestSeconds,
    twin: (threshold) => `${gauge('sluice_oldest_waiting_seconds')} > ${threshold}`,
    look: [oldest, explain],
    act: [
      'If no worker has the type or the capabilities of the task, start one that has.',
      resume,
      raiseLimit,
    ],
  },
  age_p95: {
    severity: 'warning',
    unit: 'seconds',
    threshold: 600,
    forSeconds: 0,
    bad: 'above',
    meaning: 'One in twenty of the tasks that wait has waited too long.',
    value: ({ ageP95Seconds }) => ageP95Seconds,
    twin: (threshold) => `${gauge('sluice_waiting_p95_seconds')} > ${threshold}`,
    look: [queues, workers],
    act: [moreCapacity, raiseLimit],
  },
  queue_depth: {
    severity: 'warning',
    unit: 'tasks',
    threshold: 5_000,
    forSeconds: 60,
    bad: 'above',
    meaning: 'Many tasks of one queue wait.',
    label: 'queue',
    values: ({ deepestQueues }) => deepestQueues,
    twin: (threshold) =>
      `sum by (queue) (max by (queue, priority) (sluice_queue_depth{queue!="${otherNames}"})) > ${threshold}`,
    look: [['sluice limit QUEUE', 'its limits, and how much of each is used'], workers],
    act: [
      'For a queue that is filled in batches on purpose, raise the threshold or silence the alert meanwhile.',
      resume,
      raiseLimit,
      moreCapacity,
    ],
  },
  total_depth: {
    severity: 'critical',
    unit: 'tasks',
    threshold: 50_000,
    forSeconds: 60,
    bad: 'above',
    meaning: 'Very many tasks wait, over all queues.',
    value: (snapshot) => snapshot.waiting,
    twin: (threshold) => `${waiting} > ${threshold}`,
    look: [queues, workers],
    act: [
      'Find the queue that grows. If its submitter runs wild, stop it; `sluice cancel` ends what it submitted.',
      moreCapacity,
      raiseLimit,
    ],
  },
  completion_rate_drop: {
    severity: 'warning',
    unit: 'share',
    threshold: 0.5,
    forSeconds: 0,
    bad: 'below',
    meaning:
      'Work waits, and tasks completed much more slowly in the last 5 minutes than in the last hour.',
    value: ({ waiting: depth, completedLast5Minutes, completedLastHour }) =>
      depth === 0 || completedLastHour < leastCompletedInHour
        ? null
        : (completedLast5Minutes * 12) / completedLastHour,
    twin: (threshold) =>
      `${completed('5m')} * 12 / ${completed('1h')} < ${threshold}` +
      ` and on() ${completed('1h')} >= ${leastCompletedInHour} and on() ${waiting} > 0`,
    look: [
      workers,
      queues,
      ['sluice dlq analysis', 'which errors tasks ended with, and since when'],
    ],
    act: [
      'If workers are missing, look why they ended: their own logs say so.',
      'If a circuit is open, its service pushes back: wait, or look at the status page of the service.',
      'If tasks take longer than before, the service is slow: more concurrency may help, up to its limits.',
    ],
  },
  no_progress: {
    severity: 'critical',
    unit: 'seconds',
    threshold: 60,
    forSeconds: 0,
    bad: 'above',
    meaning:
      'A worker has room, a task is ready and nothing is in its way, and nothing was claimed for a minute.',
    value: ({ unclaimedSeconds }) => unclaimedSeconds,
    twin: (threshold) => `${gauge('sluice_unclaimed_seconds')} > ${threshold}`,
    look: [['curl http://127.0.0.1:7700/healthz/progress', 'which task it is'], explain, workers],
    act: [
      'If workers heartbeat and do not poll, their event loop is blocked: look at `event_loop_delay_ms`, restart them.',
      'If workers poll and get nothing, restart the server: the ready queue is rebuilt from Postgres. Please report it.',
    ],
  },
  schedule_missed: {
    severity: 'warning',
    unit: 'seconds',
    threshold: 60,
    forSeconds: 0,
    bad: 'above',
    meaning: 'The time of a task (`run_at`, a delay or a retry) has passed, and it is not in line.',
    value: ({ scheduledLateSeconds }) => scheduledLateSeconds,
    twin: (threshold) => `${gauge('sluice_scheduled_late_seconds')} > ${threshold}`,
    look: [
      ['sluice tasks list --status pending', 'tasks that wait for a time'],
      ['curl http://127.0.0.1:7700/readyz', 'whether this server serves'],
    ],
    act: [
      'A serving server puts due tasks in line within a second. If none serves, start one.',
      'If one serves, its log says what Postgres refuses.',
    ],
  },
} as const satisfies Record<string, AlertRule>;
