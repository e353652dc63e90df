import type { Held } from './workers-api.js';

/**
 * What a worker's calls are answered with. A proxy may answer in the server's place, with any status and
 * any body: an answer that does not have this shape did not come from Sluice, and acknowledges nothing.
 */
type Check = (answer: unknown) => boolean;

export const isAcknowledged: Check = (answer) => isRecord(answer) && answer.acknowledged === true;

export const isRegistered: Check = (answer) =>
  isRecord(answer) &&
  isText(answer.worker_id) &&
  isPositive(answer.heartbeat_interval_ms) &&
  isPositive(answer.lease_ms) &&
  typeof answer.poll_wait_seconds === 'number' &&
  (answer.notes === undefined || isListOf(answer.notes, isText));

export const isPollAnswer: Check = (answer) =>
  isRecord(answer) &&
  isListOf(answer.tasks, isClaimedTask) &&
  isListOf(answer.cancelled, isText) &&
  typeof answer.drain === 'boolean';

export const isHeartbeatAnswer: Check = (answer) =>
  isAcknowledged(answer) &&
  isRecord(answer) &&
  typeof answer.should_drain === 'boolean' &&
  isListOf(answer.cancelled, isText) &&
  isListOf(answer.lost, isText);

export const isReleased: Check = (answer) =>
  isRecord(answer) && isListOf(answer.released, isText) && isListOf(answer.lost, isText);

/** One answer for each report, in order, each naming its task. */
export function areReportAnswers(reports: readonly Held[]): Check {
  return (answer) =>
    isRecord(answer) &&
    Array.isArray(answer.results) &&
    answer.results.length === reports.length &&
    reports.every(({ taskId }, index) => {
      const result: unknown = (answer.results as unknown[])[index];
      return isRecord(result) && result.task_id === taskId && isReportAnswer(result);
    });
}

function isReportAnswer({ accepted, status, reason }: Readonly<Record<string, unknown>>): boolean {
  return accepted === true
    ? typeof status === 'string'
    : accepted === false && reason === 'lease_lost';
}

function isClaimedTask(task: unknown): boolean {
  return (
    isRecord(task) &&
    isText(task.task_id) &&
    typeof task.task_type === 'string' &&
    typeof task.queue === 'string' &&
    isRecord(task.parameters) &&
    isPositive(task.timeout_seconds) &&
    isPositive(task.attempt) &&
    typeof task.lease === 'string' &&
    typeof task.retry_count === 'number' &&
    typeof task.deadline === 'string'
  );
}

function isListOf(value: unknown, isItem: Check): boolean {
  return Array.isArray(value) && value.every(isItem);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function isPositive(value: unknown): boolean {
  return typeof value === 'number' && value > 0;
}
