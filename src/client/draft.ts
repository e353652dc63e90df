import { SluiceError, type FieldError } from '../domain/errors.js';
import type { JsonObject } from '../domain/json.js';
import { defined } from '../protocol/defined.js';
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
};

/** What a draft calls by another name than the options of a submit. */
export const optionFields = { capabilities: 'requiredCapabilities' };

/** Makes drafts of one definition. What they have in common is worked out once. */
export function drafting<Input extends object>(
  definition: TaskDefinition<Input, unknown>,
): (input: Input, options?: SubmitOptions) => Promise<TaskDraft> | TaskDraft {
  const {
    type,
    queue,
    priority,
    capabilities,
    timeoutSeconds,
    maxRetries,
    cost,
    input: schema,
  } = definition;
  const defaults = {
    ...defined({ queue, priority, timeoutSeconds, maxRetries, cost }),
    ...defined({ requiredCapabilities: capabilities }),
    taskType: type,
    // Replaced in every draft: to add to a copy takes Node 20 ten times as long.
    parameters: {},
  };
  const draft = (input: Input, options?: SubmitOptions): TaskDraft => {
    const parameters = parametersOf(type, input);
    if (options === undefined) return { ...defaults, parameters };
    checkNames(optionNames, options);
    const { capabilities: requiredCapabilities, ...rest } = options;
    return {
      ...defaults,
      ...defined({ ...rest, requiredCapabilities }),
      taskType: type,
      parameters,
    };
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
