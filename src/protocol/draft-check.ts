import { Compile } from 'typebox/compile';
import { isKeepable } from '../domain/instant.js';
import { requestUnit } from '../domain/token-bucket.js';
import { bounds } from './bounds.js';
import { compileCheck } from './compile-check.js';
import { callersError } from './fields.js';
import { findJsonFault } from './json-measure.js';
import { invalidRequest } from './problem-wire.js';
import { refuseDraftFaults } from './task-draft-faults.js';
import type { TaskDraft } from './tasks-api.js';
import { taskDraftSchema } from './tasks-schema.js';
import { draftFields, taskDraftFromWire, taskDraftToWire } from './tasks-wire.js';

const checkWire = compileCheck(taskDraftSchema);

/** What all other fields of a draft take at most, by their bounds, is less than the rest of a task's bytes. */
const parameterBytes = bounds.taskBytes / 2;

/**
 * A draft that TypeScript gave, checked as HTTP checks it. Throws in the names of TypeScript. Nearly all drafts are
 * right: they are looked at field by field, which takes a tenth of writing them as the wire has them.
 */
export function readDraft(draft: TaskDraft): TaskDraft {
  return isPlainlyRight(draft) ? draft : readAsWire(draft);
}

function readAsWire(draft: TaskDraft): TaskDraft {
  const wire = taskDraftToWire(draft);
  try {
    const errors = checkWire(wire);
    if (errors !== null) throw invalidRequest(errors);
    refuseDraftFaults(wire, bounds.taskBytes);
  } catch (error) {
    throw callersError(draftFields, error);
  }
  return taskDraftFromWire(wire);
}

const maxRemembered = 1_000;

type Right = (value: unknown) => boolean;

const { properties } = taskDraftSchema;

function bySchema(schema: (typeof properties)[keyof typeof properties]): Right {
  const validator = Compile(schema);
  return (value) => validator.Check(value);
}

/** Whether a value certainly is right. What is not known here is judged by the schema of the wire. */
const isRight: { readonly [Name in keyof TaskDraft]-?: Right } = {
  taskType: remembering(bySchema(properties.task_type)),
  queue: remembering(bySchema(properties.queue)),
  priority: bySchema(properties.priority),
  parameters: (value) =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    findJsonFault(value, parameterBytes) === null,
  requiredCapabilities: bySchema(properties.required_capabilities),
  timeoutSeconds: bySchema(properties.timeout_seconds),
  maxRetries: bySchema(properties.max_retries),
  idempotencyKey: bySchema(properties.idempotency_key),
  workflowId: bySchema(properties.workflow_id),
  workflowOnFailure: bySchema(properties.workflow_on_failure),
  runAt: (value) => value instanceof Date && isKeepable(value.getTime()),
  delaySeconds: bySchema(properties.delay_seconds),
  dispatchDeadlineSeconds: bySchema(properties.dispatch_deadline_seconds),
  cost: withoutRequests(bySchema(properties.cost)),
  userId: bySchema(properties.user_id),
  tags: bySchema(properties.tags),
  traceId: bySchema(properties.trace_id),
  traceparent: bySchema(properties.traceparent),
};

const rights: ReadonlyMap<string, Right> = new Map(Object.entries(isRight));

/** Names repeat: to look one up takes a tenth of matching it. */
function remembering(right: Right): Right {
  const known = new Set<unknown>();
  return (value) => {
    if (known.has(value)) return true;
    if (!right(value)) return false;
    if (known.size >= maxRemembered) known.clear();
    known.add(value);
    return true;
  };
}

function withoutRequests(right: Right): Right {
  return (value) => right(value) && !Object.hasOwn(value as object, requestUnit);
}

/** False says nothing: `readDraft` decides. */
export function isPlainlyRight(draft: unknown): boolean {
  if (typeof draft !== 'object' || draft === null) return false;
  const { taskType, runAt, delaySeconds } = draft as Partial<TaskDraft>;
  if (taskType === undefined || (runAt !== undefined && delaySeconds !== undefined)) return false;
  for (const name in draft) {
    const value = (draft as Readonly<Record<string, unknown>>)[name];
    if (value === undefined) continue;
    if (rights.get(name)?.(value) !== true) return false;
  }
  return true;
}
