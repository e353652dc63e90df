import type { StandardJSONSchemaV1 } from '@standard-schema/spec';
import type { JsonObject } from '../domain/json.js';
import { trimDefinition } from '../protocol/definition-size.js';
import { defined } from '../protocol/defined.js';
import type { TaskTypeDefinition, ToldRetryPolicy } from '../protocol/task-types-api.js';
import type { RetryPolicy } from './apply-retry-policy.js';
import type { TaskHandler } from './handler.js';
import { toJson } from './to-json.js';

/** All of them go in one request, which may take 16 MiB. */
const maxSchemaBytes = 4 * 1024 * 1024;
const targets = ['draft-2020-12', 'draft-07'] as const;

export interface Definitions {
  readonly definitions: readonly TaskTypeDefinition[];
  /** What is not told, a sentence each. */
  readonly notes: readonly string[];
}

/** What a worker tells of its task types. */
export function definitionsOf(handlers: readonly TaskHandler[]): Definitions {
  let bytesLeft = maxSchemaBytes;
  const notes: string[] = [];
  const definitions = handlers.map((handler) => {
    const inputSchema = bytesLeft > 0 ? jsonSchemaOf(handler) : undefined;
    const trimmed = trimDefinition(defined({ ...definitionOf(handler), inputSchema }));
    notes.push(...trimmed.notes);
    const kept = trimmed.definition.inputSchema;
    if (kept !== undefined) bytesLeft -= Buffer.byteLength(JSON.stringify(kept));
    return trimmed.definition;
  });
  if (bytesLeft <= 0) {
    notes.push('The JSON Schemas of all task types take more than 4 MiB: some are not shown.');
  }
  return { definitions, notes };
}

function definitionOf(handler: TaskHandler): TaskTypeDefinition {
  const { type, queue, priority, capabilities, timeoutSeconds, maxRetries, cost, retry } = handler;
  return defined({
    ...{ taskType: type, queue, priority, capabilities, timeoutSeconds, maxRetries, cost },
    retry: retry === undefined ? undefined : toldRetry(retry),
  });
}

function toldRetry({ codes, delaySeconds }: RetryPolicy): ToldRetryPolicy {
  return defined({
    codes,
    delaySeconds: typeof delaySeconds === 'function' ? undefined : delaySeconds,
  });
}

/**
 * By Standard JSON Schema, which libraries offer beside Standard Schema: zod from 4.2 on, arktype, valibot with an
 * adapter. Undefined: it does not, or something in it, such as a Date, has no JSON Schema.
 */
function jsonSchemaOf({ input }: TaskHandler): JsonObject | undefined {
  const standard = input?.['~standard'];
  if (standard === undefined || !('jsonSchema' in standard)) return undefined;
  const { jsonSchema } = standard as StandardJSONSchemaV1.Props;
  for (const target of targets) {
    try {
      return toJson(jsonSchema.input({ target })) as JsonObject;
    } catch {
      // The library does not know this target, or the schema has no JSON Schema.
    }
  }
  return undefined;
}
