import type { AttemptOutcome } from '../domain/attempt-error.js';
import type { WorkerId } from '../domain/ids.js';
import type { TaskState } from '../domain/task-state.js';
import type { AttemptView, StateChange, TaskHistory } from '../protocol/tasks-api.js';
import { attemptErrorFromJson, type AttemptErrorJson } from './task-row.js';

/**
 * What `past_attempts` keeps: an attempt that did not complete its task, or a mark without an
 * outcome, for an end without an attempt and for a replay.
 */
export interface PastEntry {
  readonly attempt?: number;
  readonly worker_id?: WorkerId | null;
  readonly queued_at?: string | null;
  readonly assigned_at?: string | null;
  readonly started_at?: string | null;
  readonly ended_at: string;
  readonly outcome?: AttemptOutcome;
  readonly error?: AttemptErrorJson | null;
  readonly became: TaskState;
  readonly reason?: string | null;
}

/** The columns that a task's history is told from; a first-try success writes nothing else. */
export interface ToldColumns {
  readonly status: TaskState;
  readonly created_at: Date;
  readonly queued_at: Date | null;
  readonly assigned_at: Date | null;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  readonly worker_id: WorkerId | null;
  readonly attempt: number;
  readonly error: AttemptErrorJson | null;
  readonly past_attempts: readonly PastEntry[];
}

export function tellHistory(task: ToldColumns): TaskHistory {
  return { states: tellStates(task), attempts: tellAttempts(task) };
}

/** Since when the task is in the state it is in. Needs only the last of `past_attempts`. */
export function stateSince(task: ToldColumns): Date {
  switch (task.status) {
    case 'queued':
      return task.queued_at ?? task.created_at;
    case 'assigned':
      return task.assigned_at ?? task.created_at;
    case 'executing':
      return task.started_at ?? task.created_at;
    case 'pending': {
      const last = task.past_attempts.at(-1);
      return last === undefined ? task.created_at : new Date(last.ended_at);
    }
    case 'completed':
    case 'dead_letter':
    case 'failed':
    case 'cancelled':
      return task.ended_at ?? task.created_at;
  }
}

/** One way from the line to a worker; what it led to is told by whoever knows. */
interface Passage {
  readonly queuedAt: Date | null;
  readonly assignedAt: Date | null;
  readonly startedAt: Date | null;
  readonly workerId: WorkerId | null;
  readonly attempt: number;
}

function tellStates(task: ToldColumns): StateChange[] {
  const past = task.past_attempts.map((entry) => ({ entry, passage: passageOf(entry) }));
  const present = presentPassage(task);
  const first = past[0]?.passage ?? present;
  const submittedQueued = first.queuedAt?.getTime() === task.created_at.getTime();
  const states: StateChange[] = submittedQueued ? [] : [{ state: 'pending', at: task.created_at }];
  for (const { entry, passage } of past) {
    states.push(...passageStates(passage));
    append(states, endOf(entry));
  }
  states.push(...passageStates(present));
  if (task.ended_at !== null) append(states, presentEnd(task, task.ended_at));
  return states;
}

/** An end stands both in its attempt and in a mark or in the task's own columns: told once. */
function append(states: StateChange[], change: StateChange): void {
  const last = states.at(-1);
  const told = last?.state === change.state && last.at.getTime() === change.at.getTime();
  if (!told) states.push(change);
}

function passageOf(entry: PastEntry): Passage {
  return {
    queuedAt: instantOf(entry.queued_at),
    assignedAt: instantOf(entry.assigned_at),
    startedAt: instantOf(entry.started_at),
    workerId: entry.worker_id ?? null,
    attempt: entry.attempt ?? 0,
  };
}

/**
 * The way that it is on, or that it ended with. The row of a dead letter has no holder any more, but its last
 * attempt has. Needs only the last of `past_attempts`.
 */
export function lastPassage(task: ToldColumns): Passage {
  const last = task.past_attempts.at(-1);
  return task.status === 'dead_letter' && last !== undefined
    ? passageOf(last)
    : { ...presentPassage(task), queuedAt: task.queued_at };
}

/**
 * The attempt that runs, or else the last one that did. Needs only the last of `past_attempts`. Null: none
 * has started, or the last entry is of an attempt that never started.
 */
export function lastExecution(
  task: ToldColumns,
): { readonly startedAt: Date; readonly endedAt: Date | null } | null {
  if (task.started_at !== null) return { startedAt: task.started_at, endedAt: task.ended_at };
  const last = task.past_attempts.at(-1);
  const startedAt = instantOf(last?.started_at);
  return last === undefined || startedAt === null
    ? null
    : { startedAt, endedAt: new Date(last.ended_at) };
}

function presentPassage(task: ToldColumns): Passage {
  // A pending task's way has not begun, and a dead letter's is its last attempt.
  const none = task.status === 'pending' || task.status === 'dead_letter';
  return {
    queuedAt: none ? null : task.queued_at,
    assignedAt: task.assigned_at,
    startedAt: task.started_at,
    workerId: task.worker_id,
    attempt: task.attempt,
  };
}

/** A worker that starts at once claims straight into executing: it never was assigned. */
function passageStates(passage: Passage): StateChange[] {
  const { queuedAt, assignedAt, startedAt, workerId, attempt } = passage;
  const byWhom = { ...(workerId !== null && { workerId }), attempt };
  const startedAtOnce = assignedAt?.getTime() === startedAt?.getTime();
  return [
    ...(queuedAt === null ? [] : [{ state: 'queued', at: queuedAt } as const]),
    ...(assignedAt === null || startedAtOnce
      ? []
      : [{ state: 'assigned', at: assignedAt, ...byWhom } as const]),
    ...(startedAt === null ? [] : [{ state: 'executing', at: startedAt, ...byWhom } as const]),
  ];
}

function endOf(entry: PastEntry): StateChange {
  const outcome = entry.outcome === entry.became ? undefined : entry.outcome;
  const reason = entry.reason ?? outcome;
  return {
    state: entry.became,
    at: new Date(entry.ended_at),
    ...(reason !== undefined && { reason }),
  };
}

function presentEnd(task: ToldColumns, endedAt: Date): StateChange {
  const reason = task.status === 'failed' ? task.error?.message : undefined;
  return { state: task.status, at: endedAt, ...(reason !== undefined && { reason }) };
}

function tellAttempts(task: ToldColumns): AttemptView[] {
  const past = task.past_attempts.flatMap(tellPastAttempt);
  return task.status === 'completed' ? [...past, ...tellSuccess(task)] : past;
}

function tellPastAttempt(entry: PastEntry): AttemptView[] {
  const { attempt, worker_id: workerId, outcome, error } = entry;
  const startedAt = instantOf(entry.started_at) ?? instantOf(entry.assigned_at);
  if (attempt === undefined || !workerId || outcome === undefined || startedAt === null) return [];
  const endedAt = new Date(entry.ended_at);
  const why = error ? { error: attemptErrorFromJson(error) } : {};
  return [{ attempt, workerId, startedAt, endedAt, outcome, ...why }];
}

function tellSuccess(task: ToldColumns): AttemptView[] {
  const { attempt, worker_id: workerId, ended_at: endedAt } = task;
  const startedAt = task.started_at ?? task.assigned_at;
  if (workerId === null || startedAt === null || endedAt === null) return [];
  return [{ attempt, workerId, startedAt, endedAt, outcome: 'succeeded' }];
}

function instantOf(text: string | null | undefined): Date | null {
  return typeof text === 'string' ? new Date(text) : null;
}
