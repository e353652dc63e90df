import { attemptErrorCodes, type AttemptError } from '../domain/attempt-error.js';
import { storableText } from '../domain/storable-text.js';
import { bounds } from './bounds.js';
import { taskIdFromWire } from './common-wire.js';
import { defined } from './defined.js';
import { findJsonFault } from './json-measure.js';
import { invalidField } from './problem-wire.js';
import { attemptErrorToWire } from './tasks-wire.js';
import type { AfterFailure, Report, ReportAnswer } from './workers-api.js';
import type {
  AfterFailureWire,
  ReportAnswerWire,
  ReportErrorWire,
  ReportWire,
} from './workers-schema.js';
import { heldFromWire } from './workers-wire.js';

/** `path` is where the report stands in its request. */
export function reportFromWire(wire: ReportWire, path: string): Report {
  const { taskId, lease } = heldFromWire(wire);
  const { result, usage, execution_duration_seconds: executionDurationSeconds } = wire;
  const error = findError(wire, path);
  return error === null
    ? defined({
        taskId,
        lease,
        status: 'completed' as const,
        result,
        usage,
        executionDurationSeconds,
      })
    : defined({ taskId, lease, status: 'failed' as const, error, usage, executionDurationSeconds });
}

/** Null: it completed, with a result that can be kept. */
function findError({ status, result, error }: ReportWire, path: string): AttemptError | null {
  if (status === 'completed') {
    if (error !== undefined) throw invalidField(`${path}/error`, 'excludes "completed"');
    return findUnkeepable(result);
  }
  if (error === undefined) throw invalidField(`${path}/error`, 'is needed when it failed');
  if (result !== undefined) throw invalidField(`${path}/result`, 'excludes "failed"');
  return reportErrorFromWire(error, `${path}/error`);
}

export function reportToWire(report: Report): ReportWire {
  return defined({
    task_id: report.taskId,
    lease: report.lease,
    status: report.status,
    result: report.status === 'completed' ? report.result : undefined,
    error: report.status === 'failed' ? attemptErrorToWire(report.error) : undefined,
    usage: report.usage,
    execution_duration_seconds: report.executionDurationSeconds,
  });
}

/** Here and not in a worker, so that a worker in any language has its attempt end. */
function findUnkeepable(result: unknown): AttemptError | null {
  const fault = findJsonFault(result, bounds.resultBytes);
  if (fault === null) return null;
  const message = {
    too_large: `The result is larger than ${bounds.resultBytes} bytes of JSON`,
    too_deep: `The result is nested deeper than ${bounds.jsonDepth}`,
    not_finite: 'The result holds a number that is out of range',
  }[fault];
  return { code: attemptErrorCodes.resultTooLarge, message, retriable: false };
}

function reportErrorFromWire(wire: ReportErrorWire, path: string): AttemptError {
  if (findJsonFault(wire.details, bounds.taskBytes) !== null) {
    throw invalidField(
      `${path}/details`,
      `must be at most ${bounds.taskBytes} bytes and ${bounds.jsonDepth} levels of JSON`,
    );
  }
  return defined({
    code: wire.code,
    // What a service said when it failed is cut, never refused: the report would be lost over it.
    message: storableText(wire.message, bounds.messageLength),
    retriable: wire.retriable ?? true,
    retryAfterSeconds: wire.retry_after_seconds,
    details: wire.details,
  });
}

export function reportAnswerToWire(answer: ReportAnswer): ReportAnswerWire {
  return answer.accepted
    ? {
        task_id: answer.taskId,
        accepted: true,
        status: answer.status,
        ...(answer.next === undefined ? {} : { next: afterFailureToWire(answer.next) }),
      }
    : { task_id: answer.taskId, accepted: false, reason: answer.reason };
}

export function reportAnswerFromWire(wire: ReportAnswerWire): ReportAnswer {
  const taskId = taskIdFromWire(wire.task_id);
  return wire.accepted
    ? {
        taskId,
        accepted: true,
        status: wire.status,
        ...(wire.next === undefined ? {} : { next: afterFailureFromWire(wire.next) }),
      }
    : { taskId, accepted: false, reason: wire.reason };
}

function afterFailureToWire(next: AfterFailure): AfterFailureWire {
  return next.kind === 'dead_letter'
    ? { kind: next.kind, reason: next.reason }
    : { kind: next.kind, in_seconds: next.inSeconds };
}

function afterFailureFromWire({ kind, in_seconds, reason }: AfterFailureWire): AfterFailure {
  return kind === 'dead_letter'
    ? { kind, reason: reason ?? '' }
    : { kind, inSeconds: in_seconds ?? 0 };
}
