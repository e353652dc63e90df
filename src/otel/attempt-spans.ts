import {
  context,
  ROOT_CONTEXT,
  SpanKind,
  trace,
  type Attributes,
  type Context,
  type Span,
  type SpanContext,
  type Tracer,
} from '@opentelemetry/api';
import type { WorkerId } from '../domain/ids.js';
import type { Cost } from '../domain/queue-settings.js';
import type { ReportAnswer } from '../protocol/workers-api.js';
import type { Outcome } from '../worker/execution.js';
import type { RunningTask } from '../worker/handler.js';
import type { AttemptTrace, AttemptTracing } from '../worker/tracing.js';
import { fail, messaging, spanName } from './attributes.js';
import { spanContextOf } from './context.js';
import { stopwatch, type Measurements } from './measurements.js';
import { UsedTokens, withUsedTokens } from './used-tokens.js';

export type Structure = 'link' | 'parent';

/**
 * Of each attempt a `process` span, in which its handler runs, and a `settle` span for its report. Also a `wait` span
 * for the time before, in the trace of the submit if there is one.
 */
export function tracedAttempts(
  tracer: Tracer,
  measurements: Measurements,
  structure: Structure,
): AttemptTracing['begin'] {
  return (task, workerId) => {
    const submitted = task.traceparent === null ? null : spanContextOf(task.traceparent);
    const attributes = taskAttributes(task, workerId);
    if (submitted !== null) recordWait(tracer, task, attributes, submitted);
    measurements.consumed(messaging('process', task.queue));
    const span = startSpan(tracer, task, attributes, submitted, structure);
    return new TracedAttempt({ tracer, measurements, task, attributes, span });
  };
}

function taskAttributes(task: RunningTask, workerId: WorkerId): Attributes {
  return {
    'messaging.message.id': task.taskId,
    'messaging.client.id': workerId,
    'sluice.task.type': task.taskType,
    'sluice.task.priority': task.priority,
    'sluice.task.attempt': task.attempt,
    'sluice.task.trace_id': task.traceId,
    ...(task.workflowId === null ? {} : { 'sluice.workflow.id': task.workflowId }),
  };
}

/** By the worker's clock and a duration: the clock of the database may differ. */
function recordWait(
  tracer: Tracer,
  { queue, waitedSeconds }: RunningTask,
  attributes: Attributes,
  submitted: SpanContext,
): void {
  const takenAtMs = Date.now();
  const parent = trace.setSpanContext(ROOT_CONTEXT, submitted);
  const options = {
    kind: SpanKind.INTERNAL,
    startTime: takenAtMs - waitedSeconds * 1000,
    attributes: { ...messaging('wait', queue), ...attributes },
  };
  tracer.startSpan(spanName('wait', queue), options, parent).end(takenAtMs);
}

/** Not in the active context: a worker that was started within a span would have all attempts in its trace. */
function startSpan(
  tracer: Tracer,
  { queue, waitedSeconds }: RunningTask,
  attributes: Attributes,
  submitted: SpanContext | null,
  structure: Structure,
): Span {
  const isChild = submitted !== null && structure === 'parent';
  const options = {
    kind: SpanKind.CONSUMER,
    attributes: {
      ...messaging('process', queue),
      ...attributes,
      'sluice.task.wait_seconds': waitedSeconds,
    },
    links: submitted === null || isChild ? [] : [{ context: submitted }],
  };
  const parent = isChild ? trace.setSpanContext(ROOT_CONTEXT, submitted) : ROOT_CONTEXT;
  return tracer.startSpan(spanName('process', queue), options, parent);
}

interface Parts {
  readonly tracer: Tracer;
  readonly measurements: Measurements;
  readonly task: RunningTask;
  readonly attributes: Attributes;
  readonly span: Span;
}

class TracedAttempt implements AttemptTrace {
  readonly #parts: Parts;
  readonly #seconds = stopwatch();
  readonly #used = new UsedTokens();
  readonly #inSpan: Context;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#inSpan = trace.setSpan(ROOT_CONTEXT, parts.span);
  }

  run<Answer>(call: () => Answer): Answer {
    return context.with(withUsedTokens(this.#inSpan, this.#used), call);
  }

  ended(outcome: Outcome): Cost | null {
    const { span, task, measurements } = this.#parts;
    const error = noteOutcome(span, outcome);
    const usage = this.#used.total();
    if (usage !== null) span.setAttribute('sluice.usage.tokens', usage);
    span.end();
    measurements.processed(this.#seconds(), measured('process', task, error));
    return usage === null ? null : { tokens: usage };
  }

  settling(): (answer: ReportAnswer | null) => void {
    const { tracer, task, attributes, measurements } = this.#parts;
    const seconds = stopwatch();
    const options = {
      kind: SpanKind.CLIENT,
      attributes: { ...messaging('settle', task.queue), ...attributes },
    };
    const span = tracer.startSpan(spanName('settle', task.queue), options, this.#inSpan);
    return (answer) => {
      const error = noteAnswer(span, answer);
      span.end();
      measurements.called(seconds(), measured('settle', task, error));
    };
  }
}

function measured(
  operation: 'process' | 'settle',
  { queue }: RunningTask,
  error: string | undefined,
): Attributes {
  return {
    ...messaging(operation, queue),
    ...(error === undefined ? {} : { 'error.type': error }),
  };
}

/** Answers the type of its error. That its task was cancelled, or its worker drains, is none. */
function noteOutcome(span: Span, outcome: Outcome): string | undefined {
  if (outcome.kind !== 'abandoned') span.setAttribute('sluice.attempt.outcome', outcome.kind);
  switch (outcome.kind) {
    case 'completed':
      return undefined;
    case 'failed':
      fail(span, outcome.error.code, outcome.error.message);
      return outcome.error.code;
    case 'abandoned':
      span.setAttribute('sluice.attempt.outcome', outcome.why);
      if (outcome.why !== 'lease_lost') return undefined;
      fail(span, outcome.why);
      return outcome.why;
  }
}

/** Answers the type of its error. */
function noteAnswer(span: Span, answer: ReportAnswer | null): string | undefined {
  if (answer?.accepted === true) {
    span.setAttribute('sluice.task.status', answer.status);
    if (answer.next !== undefined) span.setAttribute('sluice.task.next', answer.next.kind);
    return undefined;
  }
  const type = answer === null ? 'undelivered' : answer.reason;
  fail(span, type);
  return type;
}
