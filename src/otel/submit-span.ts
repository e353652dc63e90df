import { context, SpanKind, trace, type Span, type Tracer } from '@opentelemetry/api';
import type { Tracing } from '../client/tracing.js';
import type { SubmitOutcome, TaskDraft } from '../protocol/tasks-api.js';
import { errorType, fail, messaging, spanName } from './attributes.js';
import { traceparentOf } from './context.js';
import { stopwatch, type Measurements } from './measurements.js';

/** One `send` span for what is submitted with one call; its tasks carry its context, unless they have their own. */
export function tracedSubmit(tracer: Tracer, measurements: Measurements): Tracing['submit'] {
  return async (drafts, send) => {
    const seconds = stopwatch();
    const span = startSpan(tracer, drafts);
    const ending = new Ending(span, only(drafts.map(({ queue }) => queue)));
    try {
      const sending = trace.setSpan(context.active(), span);
      const outcomes = await context.with(sending, () => send(inTraceOf(span, drafts)));
      ending.answered(outcomes);
      return outcomes;
    } catch (error) {
      ending.failed(errorType(error), error instanceof Error ? error.message : undefined);
      throw error;
    } finally {
      span.end();
      measurements.called(seconds(), ending.attributes);
      measurements.sent(drafts.length, ending.attributes);
    }
  };
}

function startSpan(tracer: Tracer, drafts: readonly TaskDraft[]): Span {
  const queue = only(drafts.map((draft) => draft.queue));
  const taskType = only(drafts.map((draft) => draft.taskType));
  return tracer.startSpan(spanName('send', queue), {
    kind: SpanKind.PRODUCER,
    attributes: {
      ...messaging('send', queue),
      ...(taskType === undefined ? {} : { 'sluice.task.type': taskType }),
      ...(drafts.length === 1 ? {} : { 'messaging.batch.message_count': drafts.length }),
    },
  });
}

function inTraceOf(span: Span, drafts: readonly TaskDraft[]): readonly TaskDraft[] {
  const traceparent = traceparentOf(span.spanContext());
  if (traceparent === null) return drafts;
  return drafts.map((draft) =>
    draft.traceparent === undefined ? { ...draft, traceparent } : draft,
  );
}

/** What the answer adds to the span, and to what is measured. */
class Ending {
  readonly #span: Span;
  #queue: string | undefined;
  #error: string | undefined;

  constructor(span: Span, queue: string | undefined) {
    this.#span = span;
    this.#queue = queue;
  }

  get attributes() {
    const error = this.#error === undefined ? {} : { 'error.type': this.#error };
    return { ...messaging('send', this.#queue), ...error };
  }

  answered(outcomes: readonly (SubmitOutcome | undefined)[]): void {
    const receipts = outcomes.flatMap((one) => (one?.kind === 'accepted' ? [one.receipt] : []));
    const refused = outcomes.flatMap((one) => (one?.kind === 'refused' ? [one] : []));
    const [receipt] = receipts;
    this.#foundQueue(only(receipts.map(({ queue }) => queue)));
    if (receipt !== undefined && outcomes.length === 1) {
      this.#span.setAttributes({
        'messaging.message.id': receipt.taskId,
        'sluice.task.trace_id': receipt.traceId,
        'sluice.task.created': receipt.created,
      });
    }
    const [first] = refused;
    if (first === undefined) return;
    if (outcomes.length > 1) this.#span.setAttribute('sluice.refused_count', refused.length);
    if (receipts.length === 0) this.failed(first.code, first.detail);
  }

  failed(type: string, message: string | undefined): void {
    this.#error = type;
    fail(this.#span, type, message);
  }

  /** Which queue it is may be decided by the server, for a submit that names none. */
  #foundQueue(queue: string | undefined): void {
    if (queue === undefined || queue === this.#queue) return;
    this.#queue = queue;
    this.#span.updateName(spanName('send', queue));
    this.#span.setAttribute('messaging.destination.name', queue);
  }
}

/** The value that all of them have. */
function only<Value>(values: readonly Value[]): Value | undefined {
  const [first] = values;
  return values.every((value) => value === first) ? first : undefined;
}
