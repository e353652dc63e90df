import { attemptErrorCodes, isDenial, isRetriable } from './attempt-error.js';
import { priorities, type Priority } from './priority.js';

export type ByPriority = Readonly<Record<Priority, number>>;

/** What holds for a task whose submit and whose type leave it out, and how its failures are judged. */
export interface TaskPolicy {
  readonly maxRetries: ByPriority;
  /** Of one attempt. */
  readonly timeoutSeconds: ByPriority;
  /** The longest pause before a retry. */
  readonly maxBackoffSeconds: ByPriority;
  /** By error code: a failure with it is retried only while the task has had fewer retries than this. */
  readonly maxRetriesByError: Readonly<Record<string, number>>;
  /** Null: a task waits for a worker for ever. */
  readonly dispatchDeadlineSeconds: number | null;
}

/** As somebody gives it; what is left out is as always. */
export interface GivenTaskPolicy {
  readonly maxRetries?: Partial<ByPriority>;
  readonly timeoutSeconds?: Partial<ByPriority>;
  readonly maxBackoffSeconds?: Partial<ByPriority>;
  readonly maxRetriesByError?: Readonly<Record<string, number>>;
  readonly dispatchDeadlineSeconds?: number | null;
}

export const defaultTaskPolicy: TaskPolicy = {
  maxRetries: { high: 5, medium: 3, low: 2 },
  timeoutSeconds: { high: 300, medium: 600, low: 900 },
  maxBackoffSeconds: { high: 10, medium: 30, low: 60 },
  maxRetriesByError: {},
  dispatchDeadlineSeconds: null,
};

/** From, to. */
export type Range = readonly [min: number, max: number];

/** The same bounds as for a single task. */
export const taskPolicyRanges = {
  maxRetries: [0, 100],
  timeoutSeconds: [1, 86_400],
  maxBackoffSeconds: [1, 3_600],
  maxRetriesByError: [0, 100],
  dispatchDeadlineSeconds: [1, 315_360_000],
} as const satisfies Readonly<Record<keyof TaskPolicy, Range>>;

/** Any code may be named, but not any number of them. */
const maxCodes = 100;
const maxCodeLength = 200;

export function taskPolicy(given: GivenTaskPolicy = {}): TaskPolicy {
  const own = defaultTaskPolicy;
  return {
    maxRetries: { ...own.maxRetries, ...given.maxRetries },
    timeoutSeconds: { ...own.timeoutSeconds, ...given.timeoutSeconds },
    maxBackoffSeconds: { ...own.maxBackoffSeconds, ...given.maxBackoffSeconds },
    maxRetriesByError: { ...given.maxRetriesByError },
    dispatchDeadlineSeconds: given.dispatchDeadlineSeconds ?? null,
  };
}

/** A sentence for each value that can't be. */
export function taskPolicyFaults(policy: TaskPolicy): string[] {
  const { dispatchDeadlineSeconds, maxRetriesByError } = policy;
  return [
    ...(['maxRetries', 'timeoutSeconds', 'maxBackoffSeconds'] as const).flatMap((name) =>
      priorityFaults(name, policy[name]),
    ),
    ...(dispatchDeadlineSeconds === null
      ? []
      : rangeFaults('dispatchDeadlineSeconds', dispatchDeadlineSeconds, 'dispatchDeadlineSeconds')),
    ...errorLimitFaults(maxRetriesByError),
  ];
}

function priorityFaults(
  name: 'maxRetries' | 'timeoutSeconds' | 'maxBackoffSeconds',
  values: ByPriority,
): string[] {
  const known: readonly string[] = priorities;
  return Object.entries(values).flatMap(([priority, value]) =>
    known.includes(priority)
      ? rangeFaults(`${name}.${priority}`, value, name)
      : [`${name}.${priority} is of no priority; there are ${priorities.join(', ')}.`],
  );
}

function rangeFaults(shown: string, value: unknown, name: keyof TaskPolicy): string[] {
  const [min, max] = taskPolicyRanges[name];
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) {
    return [];
  }
  return [`${shown} must be a whole number from ${min} to ${max}, not ${String(value)}.`];
}

function errorLimitFaults(limits: Readonly<Record<string, number>>): string[] {
  const codes = Object.entries(limits);
  if (codes.length > maxCodes) {
    return [`maxRetriesByError must name at most ${maxCodes} codes, not ${codes.length}.`];
  }
  return codes.flatMap(([code, limit]) => {
    const shown = `maxRetriesByError.${code}`;
    if (code === '' || code.length > maxCodeLength) {
      return [`maxRetriesByError must name codes of 1 to ${maxCodeLength} characters.`];
    }
    if (limit > 0 && isNeverRetried(code)) {
      return [`${shown} (${limit}) must be 0: ${code} is never retried.`];
    }
    return rangeFaults(shown, limit, 'maxRetriesByError');
  });
}

function isNeverRetried(code: string): boolean {
  return (
    isDenial(code) ||
    code === attemptErrorCodes.capacity ||
    !isRetriable({ code, message: '', retriable: true })
  );
}
