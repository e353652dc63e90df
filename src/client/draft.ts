import { SluiceError, type FieldError } from '../domain/errors.js';
import type { JsonObject } from '../domain/json.js';
import { checkNames } from '../protocol/options.js';
import type { TaskDefaults } from '../protocol/task-types-api.js';
import type { TaskDraft } from '../protocol/tasks-api.js';
import { checkInput, summary } from '../worker/input-schema.js';
import { NotJsonError, toJson } from '../worker/to-json.js';
import type { TaskDefinition } from './define-task.js';

/** What one submit says besides its input. */
export interface SubmitOptions
  extends
    TaskDefaults,
    Pick<
      TaskDraft,
      | 'idempotencyKey'
      | 'workflowId'
      | 'workflowOnFailure'
      | 'runAt'
      | 'delaySeconds'
      | 'dispatchDeadlineSeconds'
      | 'userId'
      | 'tags'
      | 'traceId'
      | 'traceparent'
    > {}

const optionNames: Readonly<Record<keyof SubmitOptions, true>> = {
  queue: true,
  priority: true,
  capabilities: true,
  timeoutSeconds: true,
  maxRetries: true,
  cost: true,
  idempotencyKey: true,
  workflowId: true,
  workflowOnFailure: true,
  runAt: true,
  delaySeconds: true,
  dispatchDeadlineSeconds: true,
  userId: true,
  tags: true,
  traceId: true,
  traceparent: true,
};

/** What a draft calls by another name than the options of a submit. */
export const optionFields = { capabilities: 'requiredCapabilities' };

const noOptions: SubmitOptions = {};

/** All of them are there, and may be undefined. */
type Members<Of> = { readonly [Name in keyof Of]-?: Of[Name] | undefined };

/** Not `??`: null is a mistake that the schema refuses. */
function firstOf<Value>(one: Value | undefined, other: Value | undefined): Value | undefined {
  return one === undefined ? other : one;
}

/** Makes drafts of one definition. */
export function drafting<Input extends object>(
  definition: TaskDefinition<Input, unknown>,
): (input: Input, options?: SubmitOptions) => Promise<TaskDraft> | TaskDraft {
  const { type, input: schema } = definition;
  // All members in one literal, also those that are absent: other ways to copy make objects that Node 20 reads slowly.
  const draft = (input: Input, options: SubmitOptions = noOptions): TaskDraft => {
    if (options !== noOptions) checkNames(optionNames, options);
    const members: Members<TaskDraft> = {
      taskType: type,
      queue: firstOf(options.queue, definition.queue),
      priority: firstOf(options.priority, definition.priority),
      parameters: parametersOf(type, input),
      requiredCapabilities: firstOf(options.capabilities, definition.capabilities),
      timeoutSeconds: firstOf(options.timeoutSeconds, definition.timeoutSeconds),
      maxRetries: firstOf(options.maxRetries, definition.maxRetries),
      idempotencyKey: options.idempotencyKey,
      workflowId: options.workflowId,
      workflowOnFailure: options.workflowOnFailure,
      runAt: options.runAt,
      delaySeconds: options.delaySeconds,
      dispatchDeadlineSeconds: options.dispatchDeadlineSeconds,
      cost: firstOf(options.cost, definition.cost),
      userId: options.userId,
      tags: options.tags,
      traceId: options.traceId,
      traceparent: options.traceparent,
    };
    return members as TaskDraft;
  };
  if (schema === undefined) return draft;
  // Checked here, before anything is sent: whoever submits learns of it, not a worker.
  return async (input, options) => {
    const checked = await checkInput(schema, input);
    if (checked.kind === 'invalid') throw invalid(type, checked.errors);
    return draft(input, options);
  };
}

/** As it was given, not as the schema transformed it: the worker's schema does that again. */
function parametersOf(type: string, input: object): JsonObject {
  try {
    const json = toJson(input);
    if (isObject(json)) return json;
  } catch (error) {
    if (!(error instanceof NotJsonError)) throw error;
    throw invalid(type, [{ path: '', message: error.message }], error);
  }
  throw invalid(type, [{ path: '', message: 'must be an object' }]);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(type: string, errors: readonly FieldError[], cause?: unknown): SluiceError {
  const detail = `The input of ${type} is not valid: ${summary(errors)}`;
  const located = errors.map(({ path, message }) => ({ path: `/parameters${path}`, message }));
  return new SluiceError('invalid_request', detail, { errors: located, cause });
}
