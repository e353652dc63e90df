import type { AlertRule } from './rule.js';
import { gauge, livingWorkers, waiting } from './twins.js';

const workers = [
  'sluice workers',
  'which workers live, are suspended or dead, and what each holds',
] as const;
const scaling = [
  'curl http://127.0.0.1:7700/api/v1/scaling',
  'how many workers there should be, why, and what went wrong when they were asked for',
] as const;

/** Too few workers, or workers in trouble. */
export const workerRules = {
  no_active_worker: {
    severity: 'critical',
    unit: 'tasks',
    threshold: 0,
    forSeconds: 120,
    bad: 'above',
    meaning: 'Tasks wait, and no worker is active.',
    value: ({ waiting: depth, activeWorkers }) => (activeWorkers === 0 ? depth : 0),
    twin: (threshold) =>
      `${waiting} > ${threshold} and on() ${gauge('sluice_workers{status="active"}')} == 0`,
    look: [workers, ['sluice doctor', 'whether the server and Postgres are well']],
    act: [
      'Start workers: `sluice worker --module ./tasks.js`.',
      'If they run, they do not reach the server, or their key is not good: their own logs say which.',
    ],
  },
  utilisation: {
    severity: 'warning',
    unit: 'share',
    threshold: 0.9,
    forSeconds: 600,
    bad: 'above',
    meaning: 'Nearly all places of the workers are in use.',
    value: ({ usedCapacity, capacity }) => (capacity === 0 ? null : usedCapacity / capacity),
    twin: (threshold) => `${gauge('sluice_worker_capacity_used_ratio')} > ${threshold}`,
    look: [workers, ['sluice queues', 'whether tasks wait for workers, or for limits']],
    act: [
      'If tasks wait, start more workers or raise their concurrency.',
      'If none wait, all is well: the capacity just fits.',
    ],
  },
  idle_workers_low: {
    severity: 'info',
    unit: 'share',
    threshold: 0.2,
    forSeconds: 300,
    bad: 'below',
    meaning: 'Few workers are idle.',
    value: ({ idleWorkers, activeWorkers }) =>
      activeWorkers === 0 ? null : idleWorkers / activeWorkers,
    twin: (threshold) =>
      `${gauge('sluice_workers_idle')} / ${gauge('sluice_workers{status="active"}')} < ${threshold}`,
    look: [workers, scaling],
    act: [
      'There is little reserve for a burst. Start more workers if bursts must not wait.',
      'Turn the alert off where workers are meant to be busy: `sluice alerts set idle_workers_low --off`.',
    ],
  },
  worker_failures: {
    severity: 'critical',
    unit: 'share',
    threshold: 0.2,
    forSeconds: 0,
    bad: 'above',
    meaning: 'Many workers fell silent in the last 5 minutes.',
    value: ({ lostWorkers, livingWorkers: living }) =>
      lostWorkers === 0 ? 0 : lostWorkers / (lostWorkers + living),
    twin: (threshold) =>
      `${gauge('sluice_workers_lost')} / (${gauge('sluice_workers_lost')} + ${livingWorkers}) > ${threshold}`,
    look: [workers],
    act: [
      'What do the dead ones share: a host, a version, a queue? Look at their logs for a kill or for lack of memory.',
      'Their tasks are with others already; one that kills every worker ends as a dead letter.',
    ],
  },
  workers_suspended: {
    severity: 'warning',
    unit: 'share',
    threshold: 0.1,
    forSeconds: 0,
    bad: 'above',
    meaning: 'Many workers get no tasks because they fail while others succeed.',
    value: ({ suspendedWorkers, livingWorkers: living }) =>
      living === 0 ? null : suspendedWorkers / living,
    twin: (threshold) => `${gauge('sluice_workers_suspended')} / ${livingWorkers} > ${threshold}`,
    look: [workers],
    act: [
      'A suspended worker is tried again after a minute. If it is suspended again and again, restart or replace it.',
      'Look for what it lacks: a secret, a GPU, a way to the service.',
    ],
  },
  scale_out_requested: {
    severity: 'info',
    unit: 'workers',
    threshold: 0,
    forSeconds: 120,
    bad: 'above',
    meaning: 'More workers are asked for than there are.',
    value: ({ missingWorkers }) => missingWorkers,
    twin: (threshold) => `${gauge('sluice_scaling_missing_workers')} > ${threshold}`,
    look: [scaling, workers],
    act: [
      'Look at the provisioner: its quota, its machines, the logs of what it starts.',
      'If `--scale-max` is reached, raise it.',
    ],
  },
  scale_out_failing: {
    severity: 'warning',
    unit: 'seconds',
    threshold: 60,
    forSeconds: 0,
    bad: 'above',
    meaning: 'Asking for workers fails.',
    value: ({ scaleOutFailingSeconds }) => scaleOutFailingSeconds,
    twin: (threshold) => `${gauge('sluice_scaling_failing_seconds')} > ${threshold}`,
    look: [scaling],
    act: [
      '`provisioner.error` of the answer says what went wrong. Repair it, or start workers by hand.',
    ],
  },
} as const satisfies Record<string, AlertRule>;
