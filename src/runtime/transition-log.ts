import type { AttemptOutcome } from '../domain/attempt-error.js';
import type { TaskId } from '../domain/ids.js';
import type { TaskState } from '../domain/task-state.js';
import { traceIdFromText } from '../domain/trace.js';
import { isProblem, transitionText } from '../domain/transition-kind.js';
import { LineBudget } from './line-budget.js';
import type { TransitionMode } from './log-format.js';
import type { Logger } from './log.js';

/** What is known of a task that changed its state. */
export interface LoggedTransition {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly taskType: string;
  readonly attempt: number;
  readonly workerId?: string;
  readonly traceId?: string;
  /** Without a trace id: as the row of the task keeps it. */
  readonly trace?: string | null;
  readonly from: TaskState | 'new';
  /** Null: its worker does not know. */
  readonly to: TaskState | null;
  readonly outcome?: AttemptOutcome;
  readonly errorCode?: string;
  readonly errorMessage?: string;
  readonly reason?: string;
  readonly retryInMs?: number;
  readonly durationMs?: number;
  readonly waitMs?: number;
}

export interface TransitionLogOptions {
  readonly mode: TransitionMode;
  /** True: what handlers threw stays out, since it may hold what a task was about. */
  readonly hidesThrown?: boolean;
  readonly nowMs?: () => number;
}

type Fields = Readonly<Record<string, unknown>>;

/** What was left out is counted in one line, this often. */
const summaryMs = 10_000;
const maxMessageLength = 500;
const maxNameLength = 200;

/**
 * One line for each change of a task's state, or for those that are a problem. A flood of problems gets 20
 * lines of each sort, then one a second, and every 10 s a line that counts those without one by type and code.
 */
export class TransitionLog {
  /** Whether it writes anything at all. */
  readonly isOn: boolean;
  readonly #log: Logger;
  readonly #options: TransitionLogOptions;
  readonly #nowMs: () => number;
  /** By the text of the line, of which there are few. */
  readonly #budgets = new Map<string, LineBudget>();
  #summary: NodeJS.Timeout | null = null;

  constructor(log: Logger, options: TransitionLogOptions) {
    this.#log = log;
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.isOn = options.mode !== 'off' && log.isLevelEnabled('warn');
  }

  /** Returns at once for a healthy task, unless the mode is `all`. */
  transition(moved: LoggedTransition): void {
    if (!this.isOn) return;
    const isWrong = isProblem(moved);
    if (this.#options.mode === 'all') {
      if (isWrong) this.#log.warn(this.#fields(moved), transitionText(moved));
      else this.#log.info(this.#fields(moved), transitionText(moved));
    } else if (isWrong) {
      const { taskType, errorCode = moved.to ?? 'unknown' } = moved;
      const text = transitionText(moved);
      if (this.#mayWrite(text, `${taskType} ${errorCode}`)) {
        this.#log.warn(this.#fields(moved), text);
      }
    }
  }

  /** What happened to something else than one task: a queue, a worker, a submit. `kind`: counted by it in a flood. */
  event(text: string, kind: string, fields: Fields, level: 'warn' | 'info' = 'warn'): void {
    if (this.isOn && this.#mayWrite(text, kind)) this.#log[level](fields, text);
  }

  /** Says how many lines were left out, if any. */
  close(): void {
    if (this.#summary !== null) clearTimeout(this.#summary);
    this.#summary = null;
    for (const [text, budget] of this.#budgets) {
      const left = budget.takeLeftOut();
      if (left === null) continue;
      const { leftOut, kinds } = left;
      this.#log.warn({ left_out: leftOut, kinds }, `${text}: more than are logged one by one`);
    }
  }

  #mayWrite(text: string, kind: string): boolean {
    const nowMs = this.#nowMs();
    const budget = this.#budgets.get(text) ?? new LineBudget(nowMs);
    this.#budgets.set(text, budget);
    if (budget.take(kind, nowMs)) return true;
    this.#summary ??= setTimeout(() => this.close(), summaryMs).unref();
    return false;
  }

  /** In the order in which a person reads them. */
  #fields(moved: LoggedTransition): Fields {
    const { taskId, outcome, errorCode, durationMs, waitMs, retryInMs } = moved;
    const traceId = traceOf(moved);
    return {
      task_type: moved.taskType,
      queue: moved.queue,
      attempt: moved.attempt,
      from: moved.from,
      ...(moved.to === null ? {} : { to: moved.to }),
      ...(outcome === undefined ? {} : { outcome }),
      ...(errorCode === undefined ? {} : { error_code: errorCode.slice(0, maxNameLength) }),
      ...this.#message(moved),
      ...(moved.reason === undefined ? {} : { reason: moved.reason.slice(0, maxMessageLength) }),
      ...(retryInMs === undefined ? {} : { retry_in_ms: Math.round(retryInMs) }),
      ...(durationMs === undefined ? {} : { duration_ms: Math.round(durationMs) }),
      ...(waitMs === undefined ? {} : { wait_ms: Math.round(waitMs) }),
      ...(moved.workerId === undefined ? {} : { worker_id: moved.workerId }),
      ...(traceId === undefined ? {} : { trace_id: traceId.slice(0, maxNameLength) }),
      task_id: taskId,
    };
  }

  /** An attempt that failed or was deferred ended by its worker's report; other messages are Sluice's own. */
  #message({ errorMessage, outcome }: LoggedTransition): Fields {
    const isThrown = outcome === 'failed' || outcome === 'deferred';
    if (errorMessage === undefined || (isThrown && this.#options.hidesThrown === true)) return {};
    return { error_message: errorMessage.slice(0, maxMessageLength) };
  }
}

function traceOf({ taskId, traceId, trace }: LoggedTransition): string | undefined {
  return traceId ?? (trace === undefined ? undefined : traceIdFromText(trace, taskId));
}
