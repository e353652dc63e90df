import { Type, type TSchema } from 'typebox';
import type { JsonObject, JsonValue } from '../domain/json.js';
import { priorities } from '../domain/priority.js';
import { taskStates } from '../domain/task-state.js';
import { bounds } from './bounds.js';
import {
  labelPattern,
  nameOrAnyPattern,
  namePattern,
  namePrefixPattern,
  textPattern,
  tokenPattern,
  uuidPattern,
} from './patterns.js';

export const nameSchema = (description: string) =>
  Type.String({ pattern: namePattern, description });

export const nameOrAnySchema = (description: string) =>
  Type.String({ pattern: nameOrAnyPattern, description });

export const namePatternSchema = (description: string) =>
  Type.String({ pattern: namePrefixPattern, description });

export const textSchema = (description: string, maxLength: number = bounds.textLength) =>
  Type.String({ minLength: 1, maxLength, pattern: textPattern, description });

export const labelSchema = (description: string) =>
  Type.String({ pattern: labelPattern, description });

export const uuidSchema = (description: string) =>
  Type.String({ pattern: uuidPattern, description, examples: [exampleTaskId] });

const tokenSchema = (description: string) =>
  Type.String({ minLength: 1, maxLength: bounds.textLength, pattern: tokenPattern, description });

export const exampleTaskId = '0197f0c4-8a3b-7c21-9d55-3f0f5a1c2b3d';

export const timestampSchema = (description: string) =>
  Type.String({ format: 'date-time', description, examples: ['2026-01-31T12:00:00.000Z'] });

export const nullable = <Schema extends TSchema>(schema: Schema) =>
  Type.Union([schema, Type.Null()]);

export const prioritySchema = Type.Enum([...priorities], {
  description: 'How urgent, as submitted',
});

export const taskStateSchema = Type.Enum([...taskStates], { description: 'Where the task is' });

export const jsonValueSchema = (description: string) => Type.Unsafe<JsonValue>({ description });

export const jsonObjectSchema = (description: string) =>
  Type.Unsafe<JsonObject>({ type: 'object', description });

/** Units and how many of each. */
export const costSchema = (description: string) =>
  Type.Record(Type.String({ pattern: namePattern }), Type.Integer({ minimum: 0, maximum: 1e12 }), {
    additionalProperties: false,
    maxProperties: 20,
    description,
    examples: [{ tokens: 1200 }],
  });

/** A request: a field that nobody knows is refused, not ignored. */
export const request = <Properties extends Record<string, TSchema>>(
  title: string,
  properties: Properties,
  options: {
    readonly minProperties?: number;
    readonly description?: string;
    /** Shown in the docs; a test holds each against its schema. */
    readonly examples?: readonly object[];
  } = {},
) => Type.Object(properties, { title, additionalProperties: false, ...options });

export const taskParamsSchema = Type.Object({ task_id: uuidSchema('The task') });

export const pageProperties = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: bounds.pageSize, description: 'Items in one answer' }),
  ),
  cursor: Type.Optional(tokenSchema('The next_cursor of the answer before')),
};

export const nextCursorSchema = nullable(
  Type.String({ description: 'Where the next page begins; null on the last' }),
);

export const emptySchema = request('Empty', {}, { description: 'Nothing.' });

export const noContentSchema = Type.Null({ description: 'No content' });
