import type { AttemptError } from '../domain/attempt-error.js';
import type { ClaimedTask, ReportAnswer } from '../protocol/workers-api.js';
import type { LoggedTransition, TransitionLog } from '../runtime/transition-log.js';

type Task = Pick<ClaimedTask, 'taskId' | 'taskType' | 'queue' | 'attempt' | 'traceId'>;

/** The attempts of a worker in its log, in the same form as in that of the server. */
export class AttemptLog {
  readonly #transitions: TransitionLog;
  readonly #workerId: () => string | null;

  constructor(transitions: TransitionLog, workerId: () => string | null) {
    this.#transitions = transitions;
    this.#workerId = workerId;
  }

  started(task: Task): void {
    this.#note(task, { from: 'queued', to: 'executing' });
  }

  completed(task: Task, seconds: number): void {
    this.#note(task, {
      from: 'executing',
      to: 'completed',
      outcome: 'succeeded',
      durationMs: seconds * 1000,
    });
  }

  /** Null answer: none came, and none will. */
  failed(task: Task, seconds: number, error: AttemptError, answer: ReportAnswer | null): void {
    this.#note(task, {
      from: 'executing',
      ...becameOf(answer),
      errorCode: error.code,
      errorMessage: error.message,
      durationMs: seconds * 1000,
    });
  }

  close(): void {
    this.#transitions.close();
  }

  #note(
    { taskId, taskType, queue, attempt, traceId: trace }: Task,
    move: Omit<LoggedTransition, keyof Task | 'trace'>,
  ): void {
    if (!this.#transitions.isOn) return;
    const workerId = this.#workerId();
    const worker = workerId === null ? {} : { workerId };
    this.#transitions.transition({ taskId, taskType, queue, attempt, trace, ...worker, ...move });
  }
}

type Became = Pick<LoggedTransition, 'to' | 'outcome' | 'reason' | 'retryInMs'>;

function becameOf(answer: ReportAnswer | null): Became {
  if (answer === null) return { to: null, outcome: 'failed', reason: 'the server was not told' };
  if (!answer.accepted) {
    return { to: null, outcome: 'failed', reason: 'its lease was lost: another attempt may run' };
  }
  const { status: to, next } = answer;
  switch (next?.kind) {
    case 'retry':
      return { to, outcome: 'failed', retryInMs: next.inSeconds * 1000 };
    case 'deferral':
      return { to, outcome: 'deferred', retryInMs: next.inSeconds * 1000 };
    case 'dead_letter':
      return { to, outcome: 'failed', reason: next.reason };
    case undefined:
      return { to, outcome: 'failed' };
  }
}
