import type { IncomingHttpHeaders } from 'node:http';
import { SluiceError } from '../domain/errors.js';
import { checkedTraceparent } from '../domain/trace.js';
import { invalidField, invalidRequest, refusalOf } from '../protocol/problem-wire.js';
import { refuseDraftFaults } from '../protocol/task-draft-faults.js';
import type { SubmitOutcome, TaskDraft } from '../protocol/tasks-api.js';
import { taskDraftSchema, type TaskDraftWire } from '../protocol/tasks-schema.js';
import { taskDraftFromWire } from '../protocol/tasks-wire.js';
import { compileCheck } from '../protocol/compile-check.js';

const checkDraft = compileCheck(taskDraftSchema);

/** What its headers say of every task in a request. */
export interface DraftHeaders {
  readonly idempotencyKey: string | null;
  readonly traceparent: string | null;
}

export function readDraftHeaders(headers: IncomingHttpHeaders): DraftHeaders {
  const { 'idempotency-key': key, traceparent } = headers;
  return {
    idempotencyKey: typeof key === 'string' ? key : null,
    // By W3C trace context, a header that is not well-formed is ignored.
    traceparent: typeof traceparent === 'string' ? checkedTraceparent(traceparent.trim()) : null,
  };
}

/** What the schema can't say. `path` is where the draft stands in its request. */
export function readDraft(
  wire: TaskDraftWire,
  headers: DraftHeaders,
  taskBytes: number,
  path = '',
): TaskDraft {
  const { idempotencyKey, traceparent } = headers;
  if (idempotencyKey !== null && (wire.idempotency_key ?? idempotencyKey) !== idempotencyKey) {
    throw invalidField(`${path}/idempotency_key`, 'differs from the Idempotency-Key header');
  }
  refuseDraftFaults(wire, taskBytes, path);
  const draft = taskDraftFromWire(wire);
  if (idempotencyKey === null && traceparent === null) return draft;
  return {
    ...(traceparent === null ? {} : { traceparent }),
    ...draft,
    ...(idempotencyKey === null ? {} : { idempotencyKey }),
  };
}

type Refused = SubmitOutcome & { kind: 'refused' };

/** A batch, sorted into what can be submitted and what is refused already; both keep their place. */
export function readBatch(
  items: readonly unknown[],
  headers: DraftHeaders,
  taskBytes: number,
): { drafts: TaskDraft[]; refused: Map<number, Refused> } {
  const drafts: TaskDraft[] = [];
  const refused = new Map<number, Refused>();
  items.forEach((item, index) => {
    try {
      drafts.push(readItem(item, headers, taskBytes, `/tasks/${index}`));
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      refused.set(index, { kind: 'refused', ...refusalOf(error) });
    }
  });
  return { drafts, refused };
}

function readItem(
  item: unknown,
  headers: DraftHeaders,
  taskBytes: number,
  path: string,
): TaskDraft {
  if (item instanceof SluiceError) throw item;
  const errors = checkDraft(item, path);
  if (errors !== null) throw invalidRequest(errors);
  return readDraft(item as TaskDraftWire, headers, taskBytes, path);
}

/** The answers to a batch in its order: those refused before in their places, the rest between. */
export function mergeOutcomes(
  count: number,
  refused: ReadonlyMap<number, Refused>,
  outcomes: readonly SubmitOutcome[],
): SubmitOutcome[] {
  const rest = outcomes.values();
  return Array.from({ length: count }, (_, index) => {
    const outcome = refused.get(index) ?? rest.next().value;
    if (outcome === undefined) throw new Error(`no answer for task ${index} of a batch`);
    return outcome;
  });
}
