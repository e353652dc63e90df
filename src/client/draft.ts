import { SluiceError, type FieldError } from '../domain/errors.js';
import type { JsonObject } from '../domain/json.js';
import type { TaskDraft } from '../protocol/api.js';
import { defined } from '../protocol/defined.js';
import { checkInput, summary } from '../worker/input-schema.js';
import { NotJsonError, toJson } from '../worker/to-json.js';
import type { TaskDefaults, TaskDefinition } from './define-task.js';

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
    > {}

/** Checked here, before anything is sent: whoever submits learns of it, not a worker. */
export async function draftOf<Input extends object>(
  definition: TaskDefinition<Input, unknown>,
  input: Input,
  options: SubmitOptions,
): Promise<TaskDraft> {
  const { type, queue, priority, capabilities, timeoutSeconds, maxRetries, cost } = definition;
  await refuseUnlessValid(definition, input);
  const { capabilities: required = capabilities, ...rest } = options;
  return {
    ...defined({ queue, priority, timeoutSeconds, maxRetries, cost }),
    ...defined({ ...rest, requiredCapabilities: required }),
    taskType: type,
    parameters: parametersOf(type, input),
  };
}

async function refuseUnlessValid<Input extends object>(
  { type, input: schema }: TaskDefinition<Input, unknown>,
  input: Input,
): Promise<void> {
  if (schema === undefined) return;
  const checked = await checkInput(schema, input);
  if (checked.kind === 'invalid') throw invalid(type, checked.errors);
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
