/** One of the entries that a rule with a label reads: a queue, or the code of an error. */
export interface LabelledNumber {
  readonly label: string;
  readonly value: number;
}

/**
 * Every number that a rule reads, measured at one moment over all servers. Flat, so that a snapshot that a server of
 * another version stored can be read: what it lacks is zero.
 */
export interface AlertSnapshot {
  /** Tasks that could be taken now. */
  readonly waiting: number;
  /** Of these, those whose effective priority is high. */
  readonly waitingHigh: number;
  /** Submitted as medium or low, and still waiting although their age made them high. */
  readonly waitingBeyondAgeing: number;
  /** Of the oldest task that waits; 0: none does. By the priority that it was submitted with. */
  readonly oldestSeconds: number;
  readonly oldestHighSeconds: number;
  readonly oldestMediumSeconds: number;
  readonly oldestLowSeconds: number;
  readonly ageP95Seconds: number;
  /** The queues in which most tasks wait. */
  readonly deepestQueues: readonly LabelledNumber[];

  readonly completedLastMinute: number;
  readonly failedLastMinute: number;
  readonly deadLettersLastMinute: number;
  readonly lapsedLastMinute: number;
  readonly neverStartedLastMinute: number;
  readonly completedLast5Minutes: number;
  readonly failedLast5Minutes: number;
  readonly retriedLast5Minutes: number;
  readonly idempotencyConflictsLast5Minutes: number;
  readonly completedLastHour: number;

  readonly activeWorkers: number;
  /** Active or draining. */
  readonly livingWorkers: number;
  /** Active, not suspended, and without a task. */
  readonly idleWorkers: number;
  readonly suspendedWorkers: number;
  /** Silent for longer than their lease, in the last 5 minutes. */
  readonly lostWorkers: number;
  readonly capacity: number;
  readonly usedCapacity: number;

  readonly replayableDeadLetters: number;
  /** Patterns of dead letters that were seen for the first time in the last 10 minutes. */
  readonly newDeadLetterPatterns: number;
  /** By the code of their error, the most frequent ones. */
  readonly deadLetterReasons: readonly LabelledNumber[];

  readonly openCircuits: number;
  /** Age of a task that nothing is in the way of, while nothing was claimed for a minute; 0: there is none. */
  readonly unclaimedSeconds: number;
  /** How late the latest of the tasks with a time is that did not come in line at its time. */
  readonly scheduledLateSeconds: number;
  /** Workers that were asked for and are not there; 0 without a provisioner. */
  readonly missingWorkers: number;
  /** For how long asking for workers has failed. */
  readonly scaleOutFailingSeconds: number;
  /** For how long the oldest webhook message has not been delivered. */
  readonly webhookFailingSeconds: number;
}

export const emptySnapshot: AlertSnapshot = {
  waiting: 0,
  waitingHigh: 0,
  waitingBeyondAgeing: 0,
  oldestSeconds: 0,
  oldestHighSeconds: 0,
  oldestMediumSeconds: 0,
  oldestLowSeconds: 0,
  ageP95Seconds: 0,
  deepestQueues: [],
  completedLastMinute: 0,
  failedLastMinute: 0,
  deadLettersLastMinute: 0,
  lapsedLastMinute: 0,
  neverStartedLastMinute: 0,
  completedLast5Minutes: 0,
  failedLast5Minutes: 0,
  retriedLast5Minutes: 0,
  idempotencyConflictsLast5Minutes: 0,
  completedLastHour: 0,
  activeWorkers: 0,
  livingWorkers: 0,
  idleWorkers: 0,
  suspendedWorkers: 0,
  lostWorkers: 0,
  capacity: 0,
  usedCapacity: 0,
  replayableDeadLetters: 0,
  newDeadLetterPatterns: 0,
  deadLetterReasons: [],
  openCircuits: 0,
  unclaimedSeconds: 0,
  scheduledLateSeconds: 0,
  missingWorkers: 0,
  scaleOutFailingSeconds: 0,
  webhookFailingSeconds: 0,
};
