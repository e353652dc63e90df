import { maxRetryAfterSeconds } from './retry-policy.js';

/** How a service that is there refuses a call: 429, an account without quota, 401, 403. */
export type Refusal = 'rate_limited' | 'quota_exhausted' | 'unauthorized' | 'forbidden';

/** A task that was refused, and how other tasks of its queue fared meanwhile. */
interface RefusedTask {
  /** In a row. */
  readonly times: number;
  readonly sinceMs: number;
  readonly lastMs: number;
  /** Calls for others that began after `sinceMs` and were answered; counted up to a bound. */
  readonly othersAnswered: number;
  /** Others that were refused for the first time since. */
  readonly othersRefused: number;
  /** Whether the service had answered others in the minute before: less telling than what came since. */
  readonly wasAnswering: boolean;
}

/**
 * Tells a task that its service will never accept from a service that accepts nobody: both are
 * answered 429. As far as it was reported to this server; a restart begins anew.
 */
export interface Refusals {
  readonly tasks: ReadonlyMap<string, RefusedTask>;
  /** Different tasks in a row: refused since the service answered a call that began after `fromMs`. */
  readonly row: readonly {
    readonly taskId: string;
    readonly kind: Refusal;
    readonly fromMs: number;
  }[];
}

/** Unsuspected: it may be the service. Suspected: not counted against the service. Convicted: pays. */
export type Suspicion = 'none' | 'suspected' | 'convicted';

export const noRefusals: Refusals = { tasks: new Map(), row: [] };

/** So often a task is refused at no cost although others are answered. */
const freeRefusals = 3;
/**
 * So often if others were answered before it only, as those of a batch whose last task it is. This takes
 * five minutes, and what a service allows in a minute comes back sooner.
 */
const freeRefusalsOfLast = 10;
const answeringMs = 60_000;
/** Where more than one in so many others is refused as well, it is the service. */
const othersPerRefused = 10;
const firstRestMs = 1_000;
const maxRestMs = 60_000;
const maxTasks = 100;
const maxRow = 10;
const maxCounted = 1_000;
/** Longer than any time that a service is believed. */
const forgetMs = 2 * maxRetryAfterSeconds * 1000;

export function isEmpty({ tasks, row }: Refusals): boolean {
  return tasks.size === 0 && row.length === 0;
}

export function suspicionOf({ tasks }: Refusals, taskId: string): Suspicion {
  const task = tasks.get(taskId);
  if (task === undefined || task.times < 2) return 'none';
  if (task.othersRefused * othersPerRefused > task.othersAnswered) return 'none';
  if (task.othersAnswered > 0) return task.times > freeRefusals ? 'convicted' : 'suspected';
  return task.wasAnswering && task.times > freeRefusalsOfLast ? 'convicted' : 'none';
}

/** A task that is refused again and again is tried less and less often: 2 s, 4 s … 60 s. */
export function restMsOf({ tasks }: Refusals, taskId: string): number {
  const times = tasks.get(taskId)?.times ?? 0;
  return times < 2 ? 0 : Math.min(firstRestMs * 2 ** (times - 1), maxRestMs);
}

export function differentIn({ row }: Refusals, kind: Refusal): number {
  return row.filter((refused) => refused.kind === kind).length;
}

export interface Refused {
  readonly taskId: string;
  /** When the call began. */
  readonly begunMs: number;
  readonly nowMs: number;
  /** When the service last answered a task of the queue; null: not since the server started. */
  readonly answeredMs: number | null;
}

/**
 * With the task in the row, unless it is suspected. A key is looked at when a call begins: a later call that is
 * answered shows that the key is good, even if it began before the refusal was known. Room for calls comes and goes:
 * there only one that began after the refusal tells anything.
 */
export function refused(before: Refusals, kind: Refusal, one: Refused): Refusals {
  const { taskId, begunMs, nowMs } = one;
  const fromMs = kind === 'unauthorized' || kind === 'forbidden' ? begunMs : nowMs;
  const after = refusedElsewhere(before, one);
  if (suspicionOf(after, taskId) !== 'none') return after;
  const others = before.row.filter((one) => one.taskId !== taskId);
  return { ...after, row: [...others, { taskId, kind, fromMs }].slice(-maxRow) };
}

/** As another server says: it tells something of the task, and nothing of the row here. */
export function refusedElsewhere(
  before: Refusals,
  { taskId, nowMs, answeredMs }: Omit<Refused, 'begunMs'>,
): Refusals {
  const known = before.tasks.get(taskId);
  const tasks = new Map<string, RefusedTask>();
  for (const [id, task] of before.tasks) {
    if (id === taskId || nowMs - task.lastMs > forgetMs) continue;
    const more = known === undefined ? 1 : 0;
    tasks.set(id, { ...task, othersRefused: Math.min(task.othersRefused + more, maxCounted) });
  }
  const wasAnswering = answeredMs !== null && nowMs - answeredMs < answeringMs;
  const first = { times: 0, sinceMs: nowMs, othersAnswered: 0, othersRefused: 0, wasAnswering };
  const { times, ...rest } = known ?? first;
  tasks.set(taskId, { ...rest, times: times + 1, lastMs: nowMs });
  return { ...before, tasks: latest(tasks) };
}

/**
 * A call that began before a refusal says nothing about it: a long one may have been let in while
 * there was still room, or the key still good. The same object: it said nothing new.
 */
export function answeredOne(before: Refusals, taskId: string, begunMs: number): Refusals {
  const row = before.row.filter(({ fromMs }) => fromMs > begunMs);
  const isTold = [...before.tasks].some(([id, task]) => {
    return id === taskId || (task.sinceMs <= begunMs && task.othersAnswered < maxCounted);
  });
  if (!isTold && row.length === before.row.length) return before;
  const tasks = new Map<string, RefusedTask>();
  for (const [id, task] of before.tasks) {
    if (id === taskId || begunMs - task.lastMs > forgetMs) continue;
    const more = task.sinceMs <= begunMs && task.othersAnswered < maxCounted ? 1 : 0;
    tasks.set(id, { ...task, othersAnswered: task.othersAnswered + more });
  }
  return { tasks, row };
}

/** Of a task that has ended. */
export function forgotten(before: Refusals, taskId: string): Refusals {
  if (!before.tasks.has(taskId)) return before;
  const tasks = new Map(before.tasks);
  tasks.delete(taskId);
  return { ...before, tasks };
}

function latest(tasks: ReadonlyMap<string, RefusedTask>): ReadonlyMap<string, RefusedTask> {
  return tasks.size <= maxTasks ? tasks : new Map([...tasks].slice(-maxTasks));
}
