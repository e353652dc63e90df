import { priorities, type Priority } from '../domain/priority.js';
import {
  defaultTaskPolicy,
  taskPolicyFaults,
  taskPolicyRanges,
  type ByPriority,
  type Range,
  type TaskPolicy,
} from '../domain/task-policy.js';
import { optional, secondsAsMs, setting, whole, type Parse, type Setting } from './setting.js';

const longestMs = 86_400_000;
const { maxRetries, timeoutSeconds, maxBackoffSeconds, dispatchDeadlineSeconds } = taskPolicyRanges;

/** What tasks get that do not say it themselves, and how their failures are judged. */
export const taskSettings = {
  maxRetries: setting(
    '--max-retries',
    ['SLUICE_MAX_RETRIES'],
    byPriority(maxRetries, defaultTaskPolicy.maxRetries),
    defaultTaskPolicy.maxRetries,
    'retries of a task that names none, by priority; one number for all of them',
  ),
  timeoutSeconds: setting(
    '--timeout-seconds',
    ['SLUICE_TIMEOUT_SECONDS'],
    byPriority(timeoutSeconds, defaultTaskPolicy.timeoutSeconds),
    defaultTaskPolicy.timeoutSeconds,
    'seconds that an attempt may take of a task that names none, by priority',
  ),
  maxBackoffSeconds: setting(
    '--max-backoff-seconds',
    ['SLUICE_MAX_BACKOFF_SECONDS'],
    byPriority(maxBackoffSeconds, defaultTaskPolicy.maxBackoffSeconds),
    defaultTaskPolicy.maxBackoffSeconds,
    'the longest pause before a retry, by priority',
  ),
  maxRetriesByError: setting(
    '--max-retries-by-error',
    ['SLUICE_MAX_RETRIES_BY_ERROR'],
    byCode,
    {},
    'by error code: it is retried only while the task has had fewer retries, like WORKER_LOST=1,TIMEOUT=2',
  ),
  dispatchDeadlineSeconds: setting(
    '--dispatch-deadline-seconds',
    ['SLUICE_DISPATCH_DEADLINE_SECONDS'],
    optional(whole(...dispatchDeadlineSeconds)),
    null,
    'tasks that name no dispatch deadline fail when no worker took them for so long (never)',
  ),
  assignmentTimeoutMs: setting(
    '--assignment-timeout-seconds',
    ['SLUICE_ASSIGNMENT_TIMEOUT_MS'],
    optional(whole(100, longestMs)),
    null,
    'how long a prefetched task may wait for its start before it goes back (30 s, and 3 heartbeats at least)',
    optional(secondsAsMs(100, longestMs)),
  ),
} as const;

type Name = keyof typeof taskSettings;
type GivenTasks = {
  readonly [Each in Name]: (typeof taskSettings)[Each] extends Setting<infer Value> ? Value : never;
};

export function readTaskSettings(
  read: <Value>(name: Name, one: Setting<Value>) => Value,
): GivenTasks {
  return {
    maxRetries: read('maxRetries', taskSettings.maxRetries),
    timeoutSeconds: read('timeoutSeconds', taskSettings.timeoutSeconds),
    maxBackoffSeconds: read('maxBackoffSeconds', taskSettings.maxBackoffSeconds),
    maxRetriesByError: read('maxRetriesByError', taskSettings.maxRetriesByError),
    dispatchDeadlineSeconds: read('dispatchDeadlineSeconds', taskSettings.dispatchDeadlineSeconds),
    assignmentTimeoutMs: read('assignmentTimeoutMs', taskSettings.assignmentTimeoutMs),
  };
}

/** One by one: `given` may hold every other setting as well. */
export function taskConfig(given: GivenTasks): TaskPolicy {
  return {
    maxRetries: given.maxRetries,
    timeoutSeconds: given.timeoutSeconds,
    maxBackoffSeconds: given.maxBackoffSeconds,
    maxRetriesByError: given.maxRetriesByError,
    dispatchDeadlineSeconds: given.dispatchDeadlineSeconds,
  };
}

export function taskSettingFaults(given: GivenTasks): string[] {
  return taskPolicyFaults(taskConfig(given));
}

/** `high=5,medium=3`, or `5` for all; in a file also an object. What is left out is as always. */
function byPriority([min, max]: Range, defaults: ByPriority): Parse<ByPriority> {
  const one = whole(min, max);
  const mustBe = `like high=${defaults.high},low=${defaults.low}, each a whole number from ${min} to ${max}`;
  return (given) => {
    const all = one(given);
    if (all.kind === 'value') {
      const { value } = all;
      return { kind: 'value', value: { high: value, medium: value, low: value } };
    }
    const pairs = pairsIn(given);
    if (pairs === null) return { kind: 'problem', mustBe };
    const value: Record<Priority, number> = { ...defaults };
    for (const [name, text] of pairs) {
      const priority = priorities.find((known) => known === name);
      const parsed = one(text);
      if (priority === undefined || parsed.kind === 'problem') return { kind: 'problem', mustBe };
      value[priority] = parsed.value;
    }
    return { kind: 'value', value };
  };
}

function byCode(given: unknown): ReturnType<Parse<Readonly<Record<string, number>>>> {
  const one = whole(...taskPolicyRanges.maxRetriesByError);
  const value: [string, number][] = [];
  for (const [code, text] of pairsIn(given) ?? [['', null] as const]) {
    const parsed = one(text);
    if (code === '' || parsed.kind === 'problem') {
      return { kind: 'problem', mustBe: 'like WORKER_LOST=1,TIMEOUT=2, each from 0 to 100' };
    }
    value.push([code, parsed.value]);
  }
  return { kind: 'value', value: Object.fromEntries(value) };
}

/** Null: it is no list of pairs, or names one twice. */
function pairsIn(given: unknown): readonly (readonly [string, unknown])[] | null {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) {
    return Object.entries(given);
  }
  if (typeof given !== 'string') return null;
  const pairs = given.split(',').map((pair) => {
    const [name = '', ...value] = pair.split('=');
    return [name.trim(), value.join('=').trim()] as const;
  });
  return new Set(pairs.map(([name]) => name)).size === pairs.length ? pairs : null;
}
