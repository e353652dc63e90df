import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { JsonObject } from '../domain/json.js';
import type { TaskDefaults } from '../protocol/task-types-api.js';
import type { RetryPolicy } from '../worker/apply-retry-policy.js';
import { checkDefinition } from '../worker/check-definition.js';
import type { HandlerContext } from '../worker/handler.js';

type ParametersSchema = StandardSchemaV1<object, unknown>;
/** Without a schema: any JSON object, as it was submitted. */
type AnyParameters = StandardSchemaV1<JsonObject, JsonObject>;

export interface TaskOptions<Schema extends ParametersSchema, Result> extends TaskDefaults {
  readonly type: string;
  /** Any Standard Schema: checked at submit, and again before each run. */
  readonly input?: Schema;
  /** Which failures are tried again, and when; `maxRetries` says how often at most. */
  readonly retry?: RetryPolicy;
  run(
    input: StandardSchemaV1.InferOutput<Schema>,
    context: HandlerContext,
  ): Result | Promise<Result>;
}

/** `Input` is what a submit takes, before the schema's defaults and transforms. */
export interface TaskDefinition<Input extends object, Result> extends TaskDefaults {
  readonly type: string;
  readonly input?: StandardSchemaV1<Input, unknown>;
  readonly retry?: RetryPolicy;
  run(input: unknown, context: HandlerContext): Result | Promise<Result>;
}

/** A task type: its name, its input, its handler, and the defaults of its submits. */
export function defineTask<Result, Schema extends ParametersSchema = AnyParameters>(
  options: TaskOptions<Schema, Result>,
): TaskDefinition<StandardSchemaV1.InferInput<Schema>, Result> {
  checkDefinition(options);
  return options;
}
