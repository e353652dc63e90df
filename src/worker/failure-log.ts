import type { AttemptError } from '../domain/attempt-error.js';
import type { ClaimedTask, ReportAnswer } from '../protocol/workers-api.js';
import type { Logger } from '../runtime/log.js';

/** So many lines at once, then one a second: every failure of a day of normal work has its line. */
const burstLines = 20;
const lineMs = 1_000;
/** What was left out is counted in one line, this often. */
const summaryMs = 10_000;
const maxKinds = 10;
const maxMessageLength = 500;

/**
 * A warning for each attempt that failed: which task, why, and what happens next. A flood of failures
 * gets 20 lines, then one a second, and every 10 s a line that counts those without one by type and code.
 * Parameters are never in it; the message is what the handler threw.
 */
export class FailureLog {
  readonly #log: Logger;
  readonly #nowMs: () => number;
  readonly #leftOut = new Map<string, number>();
  #lines = burstLines;
  #refilledAtMs: number;
  #summary: NodeJS.Timeout | null = null;

  constructor(log: Logger, nowMs = () => performance.now()) {
    this.#log = log;
    this.#nowMs = nowMs;
    this.#refilledAtMs = nowMs();
  }

  note(
    { taskId, taskType, attempt }: Pick<ClaimedTask, 'taskId' | 'taskType' | 'attempt'>,
    error: AttemptError,
    answer: ReportAnswer | null,
  ): void {
    if (!this.#takeLine()) {
      this.#leaveOut(`${taskType} ${error.code}`);
      return;
    }
    this.#log.warn(
      {
        task_type: taskType,
        attempt,
        code: error.code,
        message: error.message.slice(0, maxMessageLength),
        next: nextText(answer),
        task_id: taskId,
      },
      'attempt failed',
    );
  }

  /** Says how many were left out, if any. */
  close(): void {
    if (this.#summary !== null) clearTimeout(this.#summary);
    this.#summary = null;
    if (this.#leftOut.size === 0) return;
    const kinds = Object.fromEntries(this.#leftOut);
    const leftOut = [...this.#leftOut.values()].reduce((sum, count) => sum + count, 0);
    this.#leftOut.clear();
    this.#log.warn({ leftOut, kinds }, 'more attempts failed than are logged one by one');
  }

  #takeLine(): boolean {
    const nowMs = this.#nowMs();
    const refilled = Math.floor((nowMs - this.#refilledAtMs) / lineMs);
    if (refilled > 0) {
      this.#lines = Math.min(burstLines, this.#lines + refilled);
      this.#refilledAtMs += refilled * lineMs;
    }
    if (this.#lines === 0) return false;
    this.#lines -= 1;
    return true;
  }

  #leaveOut(kind: string): void {
    const isNew = !this.#leftOut.has(kind) && this.#leftOut.size >= maxKinds;
    const counted = isNew ? 'others' : kind;
    this.#leftOut.set(counted, (this.#leftOut.get(counted) ?? 0) + 1);
    this.#summary ??= setTimeout(() => this.close(), summaryMs).unref();
  }
}

function nextText(answer: ReportAnswer | null): string {
  if (answer === null) return 'the server could not be told';
  if (!answer.accepted) return 'none: its lease was lost, another attempt may run';
  const { status, next } = answer;
  switch (next?.kind) {
    case 'retry':
      return `retry in ${secondsText(next.inSeconds)}`;
    case 'deferral':
      return `deferred for ${secondsText(next.inSeconds)}, at no cost`;
    case 'dead_letter':
      return `dead letter: ${next.reason}`;
    case undefined:
      return status;
  }
}

/** 0.5 s, 2.1 s, 45 s */
function secondsText(seconds: number): string {
  return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
}
