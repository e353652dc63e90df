import { ceilingFaults, type Threshold } from '../domain/admission.js';
import { refuseConflicts, serverConflicts } from '../domain/setting-conflicts.js';
import { taskPolicy, taskPolicyFaults, type TaskPolicy } from '../domain/task-policy.js';
import { submissionLimitConflicts, type SubmissionLimit } from '../domain/submission-limit.js';

/** Who is woken first when several polls wait for the same work. */
export type WakeOrder =
  /** The least loaded worker; of equal ones, whoever has waited longest. */
  | 'spread'
  /** Workers in a stable order, so that surplus ones go idle and can be retired. */
  | 'concentrate';

export interface EngineSettings {
  readonly heartbeatIntervalMs: number;
  /** How long a worker may be silent before its tasks go back. */
  readonly leaseMs: number;
  /** How long an assigned task may stay unstarted. */
  readonly unstartedMs: number;
  /** The sweeper leaves a timed-out attempt this long to its worker, who reports it better. */
  readonly timeoutGraceMs: number;
  readonly pollWaitSeconds: number;
  readonly sweepIntervalMs: number;
  /** How often the feeder looks for backlog that others put there. */
  readonly discoverIntervalMs: number;
  /** The lease of the one process that serves from memory, and how often it is renewed. */
  readonly servingLeaseMs: number;
  readonly servingRenewMs: number;
  readonly wakeOrder: WakeOrder;
  /** How long a worker that fails while others succeed gets nothing. */
  readonly benchMs: number;
  /** For how long tasks that completed, failed or were cancelled are kept. */
  readonly retainEndedDays: number;
  readonly retainDeadLettersDays: number;
  /** For how long the audit is kept. */
  readonly auditDays: number;
  readonly retentionIntervalMs: number;
  /** How often all settings and API keys are read anew, not only what changed. */
  readonly rereadIntervalMs: number;
  /** How far ahead a task may be scheduled. */
  readonly maxScheduleDays: number;
  /** How often partitions of the next days are made, and what expired is deleted. */
  readonly upkeepIntervalMs: number;
  /** Tasks that may be active, in all; from where on those of medium and low priority are refused. */
  readonly maxActive: number;
  readonly maxActiveMedium: Threshold;
  readonly maxActiveLow: Threshold;
  /** How often, at most, the counts of active tasks are compared with the tasks. */
  readonly admissionCheckMs: number;
  /** How many tasks may be submitted with one API key; empty: any number. */
  readonly submitLimitPerKey: readonly SubmissionLimit[];
  /** And for one `user_id`, whatever the key. */
  readonly submitLimitPerUser: readonly SubmissionLimit[];
  /** Retries, time-outs and the like of tasks that do not say it themselves. */
  readonly tasks: TaskPolicy;
}

export const defaultEngineSettings: EngineSettings = {
  heartbeatIntervalMs: 10_000,
  leaseMs: 30_000,
  unstartedMs: 30_000,
  timeoutGraceMs: 5_000,
  pollWaitSeconds: 20,
  sweepIntervalMs: 1_000,
  discoverIntervalMs: 1_000,
  servingLeaseMs: 6_000,
  servingRenewMs: 2_000,
  wakeOrder: 'spread',
  benchMs: 60_000,
  retainEndedDays: 7,
  retainDeadLettersDays: 30,
  auditDays: 365,
  retentionIntervalMs: 60_000,
  rereadIntervalMs: 60_000,
  maxScheduleDays: 366,
  upkeepIntervalMs: 60_000,
  maxActive: 10_000_000,
  maxActiveMedium: '90%',
  maxActiveLow: '80%',
  admissionCheckMs: 60_000,
  submitLimitPerKey: [],
  submitLimitPerUser: [],
  tasks: taskPolicy(),
};

/** What is not given follows from what is, or is the default. All that contradicts is told at once. */
export function engineSettings(given: Partial<EngineSettings> = {}): EngineSettings {
  const whole = { ...defaultEngineSettings, ...given };
  const unstartedMs =
    given.unstartedMs ?? Math.max(whole.unstartedMs, 3 * whole.heartbeatIntervalMs);
  const settings = { ...whole, unstartedMs };
  const { wakeOrder: _, submitLimitPerKey, submitLimitPerUser, tasks, ...others } = settings;
  const { maxActive, maxActiveMedium, maxActiveLow, ...times } = others;
  refuseConflicts([
    ...serverConflicts(times),
    ...ceilingFaults({ maxActive, maxActiveMedium, maxActiveLow }),
    ...submissionLimitConflicts({ submitLimitPerKey, submitLimitPerUser }),
    ...taskPolicyFaults(tasks),
  ]);
  return settings;
}
