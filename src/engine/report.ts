import { judgeFailure, type Excuse, type RetryLimits } from '../domain/retry-policy.js';
import type { AttemptError } from '../domain/attempt-error.js';
import type { WorkerId } from '../domain/ids.js';
import { grantIn } from '../domain/lease.js';
import type { Cost } from '../domain/queue-settings.js';
import type { TaskEvent } from '../protocol/events.js';
import type {
  AfterFailure,
  Held,
  Report as WorkerReport,
  ReportAnswer,
} from '../protocol/workers-api.js';
import { Batcher } from '../runtime/batcher.js';
import { findAttempts, findSettled, type AttemptRow } from '../store/find-attempts.js';
import type { FinishedRow } from '../store/finish-members.js';
import { completeTasks, type Completion, type KnownAttempt } from '../store/finish-tasks.js';
import type { Circuits } from './circuits.js';
import {
  asRefusal,
  instant,
  judgeDatabaseFailure,
  tellAll,
  tokensUsed,
  type EngineContext,
} from './context.js';
import type { AttemptEnd, EndAttempts } from './end-attempts.js';
import type { Feeder } from './feeder.js';
import type { RecentWork } from './recent-work.js';
import type { Slots } from './slots.js';
import type { WorkerJudge } from './worker-judge.js';

const maxReportsAtOnce = 1_000;
const maxBytesAtOnce = 8 * 1024 * 1024;

type Success = Completion;

type Written = Pick<ReportAnswer & { accepted: true }, 'status' | 'next'>;

interface Failure extends Held {
  readonly error: AttemptError;
  readonly usage: Cost | null;
}

export interface ReportParts {
  readonly endAttempts: EndAttempts;
  readonly feeder: Feeder;
  readonly slots: Slots;
  readonly judge: WorkerJudge;
  readonly circuits: Circuits;
  readonly recent: RecentWork;
}

/** Takes what workers report. A stale lease changes nothing and says so. */
export class Report {
  readonly #context: EngineContext;
  readonly #parts: ReportParts;
  readonly #successes: Batcher<Success, ReportAnswer>;
  readonly #failures: Batcher<Failure, ReportAnswer>;

  constructor(context: EngineContext, parts: ReportParts) {
    this.#context = context;
    this.#parts = parts;
    const shared = { maxItems: maxReportsAtOnce, judge: judgeDatabaseFailure };
    this.#successes = new Batcher({
      ...shared,
      flush: (successes) => this.#complete(successes),
      weigh: ({ resultJson }) => resultJson?.length ?? 0,
      maxWeight: maxBytesAtOnce,
    });
    this.#failures = new Batcher({ ...shared, flush: (failures) => this.#fail(failures) });
  }

  async report(workerId: WorkerId, reports: readonly WorkerReport[]): Promise<ReportAnswer[]> {
    const successes: Success[] = [];
    const failures: Failure[] = [];
    for (const report of reports) {
      const known = this.#parts.recent.takeAttempt(report.lease, workerId);
      if (report.status === 'completed') successes.push(toSuccess(report, known));
      else failures.push(toFailure(report));
    }
    try {
      const [completed, failed] = await Promise.all([
        this.#successes.addAll(successes),
        this.#failures.addAll(failures),
      ]);
      const answers = { completed: completed.values(), failed: failed.values() };
      return reports.map(({ status }) => answerOf(answers[status].next()));
    } catch (error) {
      throw asRefusal(error);
    }
  }

  async #complete(successes: readonly Success[]): Promise<ReportAnswer[]> {
    const rows = await completeTasks(this.#context.db, successes, instant(this.#context));
    const usageOf = usageByLease(successes);
    await this.#parts.slots.free(
      rows.map(({ taskId, lease, queue, cost }) => {
        const usage = usageOf.get(lease) ?? null;
        return { taskId, grant: grantIn(lease), queue, reserved: cost, usage };
      }),
    );
    if (rows.some(({ released }) => released)) this.#parts.feeder.noteDue(0);
    tellAll(this.#context, rows, (row, at) => toCompletedEvent(row, usageOf.get(row.lease), at));
    await this.#parts.judge.succeeded(rows);
    await this.#parts.circuits.succeeded(rows);
    // As nearly always: every lease was good, and none was reported twice.
    if (rows.length === successes.length) {
      return successes.map(({ taskId }) => ({ taskId, accepted: true, status: 'completed' }));
    }
    const written: Written = { status: 'completed' };
    return this.#answer(successes, new Map(rows.map(({ lease }) => [lease, written])));
  }

  /**
   * Decide purely, then write once: the lease fences the write should the row have moved on. The
   * circuit comes first: the slots of a queue that must stop are freed when it has stopped.
   */
  async #fail(failures: readonly Failure[]): Promise<ReportAnswer[]> {
    const { endAttempts, judge, circuits } = this.#parts;
    const failed = joined(await findAttempts(this.#context.db, failures), failures);
    const excuses = await circuits.failed(failed);
    const ends = failed.map((attempt, index) => {
      const { error, usage } = attempt;
      const excuse = excuses[index] ?? null;
      const { random, settings } = this.#context;
      const end = failedAttempt(attempt, error, random(), settings.tasks, 'failed', excuse);
      return { ...end, usage };
    });
    const rows = await endAttempts.end(ends);
    for (const { queue, taskId, to } of rows)
      if (to === 'dead_letter') circuits.forget(queue, taskId);
    const errorOf = new Map(failures.map(({ lease, error }) => [lease, error]));
    await judge.failed(
      rows.flatMap((row) => {
        const error = errorOf.get(row.lease);
        if (error === undefined) return [];
        const isOutage = circuits.isOutage(row.queue, error);
        return [{ ...row, lane: row.window.lane, error, isOutage }];
      }),
    );
    const endOf = new Map(ends.map((end) => [end.lease, end]));
    const written = rows.map(({ lease, to }): [Held['lease'], Written] => {
      const end = endOf.get(lease);
      return [lease, { status: to, ...(end === undefined ? {} : { next: afterFailure(end) }) }];
    });
    return this.#answer(failures, new Map(written));
  }

  /** What was not written now was written before, with this very lease, or the lease is lost. */
  async #answer(
    reports: readonly Held[],
    written: ReadonlyMap<Held['lease'], Written>,
  ): Promise<ReportAnswer[]> {
    const unwritten = reports.filter(({ lease }) => !written.has(lease));
    const settled = unwritten.length === 0 ? [] : await findSettled(this.#context.db, unwritten);
    const settledBefore = new Map(settled.map(({ lease, status }) => [lease, { status }]));
    return reports.map(({ taskId, lease }) => {
      const end: Written | undefined = written.get(lease) ?? settledBefore.get(lease);
      return end === undefined
        ? { taskId, accepted: false, reason: 'lease_lost' }
        : { taskId, accepted: true, ...end };
    });
  }
}

function toSuccess(
  report: WorkerReport & { status: 'completed' },
  known: KnownAttempt | null,
): Success {
  const { taskId, lease, result = null, usage, executionDurationSeconds = null } = report;
  return {
    taskId,
    lease,
    resultJson: JSON.stringify(result),
    usageJson: usage === undefined ? null : JSON.stringify(usage),
    executionSeconds: executionDurationSeconds,
    known,
  };
}

function toFailure(report: WorkerReport & { status: 'failed' }): Failure {
  const { taskId, lease, error, usage = null } = report;
  return { taskId, lease, error, usage };
}

function answerOf({ value }: IteratorResult<ReportAnswer, unknown>): ReportAnswer {
  return value as ReportAnswer;
}

function usageByLease(successes: readonly Success[]): ReadonlyMap<Held['lease'], Cost> {
  const usageOf = new Map<Held['lease'], Cost>();
  for (const { lease, usageJson } of successes) {
    if (usageJson !== null) usageOf.set(lease, JSON.parse(usageJson) as Cost);
  }
  return usageOf;
}

function toCompletedEvent(row: FinishedRow, usage: Cost | undefined, at: Date): TaskEvent {
  return {
    taskId: row.taskId,
    queue: row.queue,
    taskType: row.taskType,
    priority: row.priority,
    from: row.from,
    to: 'completed',
    attempt: row.attempt,
    workerId: row.workerId,
    trace: row.trace,
    outcome: 'succeeded',
    durationMs: row.runMs,
    ...tokensUsed(row.cost, usage),
    at,
  };
}

/** Each attempt once, also when it was reported twice in one batch. */
function joined(
  attempts: readonly AttemptRow[],
  failures: readonly Failure[],
): (AttemptRow & Failure)[] {
  const attemptOf = new Map(attempts.map((attempt) => [attempt.lease, attempt]));
  const failureOf = new Map(failures.map((failure) => [failure.lease, failure]));
  return [...attemptOf.values()].flatMap((attempt) => {
    const failure = failureOf.get(attempt.lease);
    return failure === undefined ? [] : [{ ...attempt, ...failure }];
  });
}

/** What the worker hears of it. */
function afterFailure({ outcome, next }: AttemptEnd): AfterFailure {
  if (next.kind === 'dead_letter') return { kind: 'dead_letter', reason: next.reason };
  const inSeconds = next.delayMs / 1000;
  return { kind: outcome === 'deferred' ? 'deferral' : 'retry', inSeconds };
}

/** What a failed attempt becomes. */
export function failedAttempt(
  attempt: AttemptRow,
  error: AttemptError,
  random: number,
  limits: RetryLimits,
  outcome: 'failed' | 'timed_out' | 'lapsed' = 'failed',
  excuse: Excuse | null = null,
): AttemptEnd {
  const { taskId, lease, timeoutSeconds } = attempt;
  const verdict = judgeFailure({ ...attempt, error }, random, excuse, limits);
  switch (verdict.kind) {
    case 'dead_letter':
      return { taskId, lease, outcome, error, next: verdict };
    case 'defer':
      return {
        taskId,
        lease,
        outcome: 'deferred',
        error,
        next: {
          kind: 'pending',
          delayMs: verdict.delayMs,
          costsRetry: false,
          countsAs: 'deferral',
          timeoutSeconds,
        },
      };
    case 'retry':
      return {
        taskId,
        lease,
        outcome,
        error,
        next: {
          kind: 'pending',
          delayMs: verdict.delayMs,
          costsRetry: true,
          countsAs: null,
          timeoutSeconds: verdict.timeoutSeconds,
        },
      };
  }
}
