import { Type, type Static } from 'typebox';
import { bounds } from './bounds.js';
import {
  costSchema,
  jsonObjectSchema,
  nameSchema,
  nextCursorSchema,
  nullable,
  pageProperties,
  prioritySchema,
  request,
  timestampSchema,
} from './common-schema.js';
import { taskDraftSchema } from './tasks-schema.js';

const { priority, required_capabilities, timeout_seconds, max_retries, cost } =
  taskDraftSchema.properties;

const retrySchema = request('RetryPolicy', {
  codes: Type.Optional(
    Type.Record(
      Type.String({ pattern: '^[A-Za-z0-9_.:-]{1,100}$' }),
      Type.Union([Type.Literal(false), Type.Integer({ minimum: 0 })]),
      {
        additionalProperties: false,
        description: 'By the code of the error: never (false), or how often at most',
      },
    ),
  ),
  delay_seconds: Type.Optional(
    Type.Array(Type.Number({ minimum: 0 }), {
      description: 'How long each retry waits; the last one repeats',
    }),
  ),
});

export const taskTypeDefinitionSchema = request(
  'TaskTypeDefinition',
  {
    task_type: nameSchema('Which type it defines; one of task_types'),
    queue: Type.Optional(nameSchema('Where its tasks go whose submit names no queue')),
    priority,
    required_capabilities,
    timeout_seconds,
    max_retries,
    cost,
    retry: Type.Optional(retrySchema),
    input_schema: Type.Optional(
      jsonObjectSchema(
        `The JSON Schema of its parameters, for people; left out when it takes more than ${bounds.inputSchemaBytes / 1024} KiB`,
      ),
    ),
  },
  {
    description: 'What submits of a task type get that do not say it themselves.',
    examples: [{ task_type: 'chat', queue: 'gpt-4o', max_retries: 5, cost: { tokens: 1200 } }],
  },
);
export type TaskTypeDefinitionWire = Static<typeof taskTypeDefinitionSchema>;

const listedProperties = {
  task_type: Type.String(),
  queue: nullable(Type.String({ description: 'Null: "default"' })),
  priority: nullable(prioritySchema),
  required_capabilities: Type.Array(Type.String()),
  timeout_seconds: nullable(Type.Integer({ description: 'Null: by priority' })),
  max_retries: nullable(Type.Integer({ description: 'Null: by priority' })),
  cost: nullable(costSchema('Units that a task costs')),
  retry: nullable(retrySchema),
  version: nullable(Type.String({ description: 'Of the worker that defined it' })),
  defined_at: timestampSchema('Since when it counts'),
  seen_at: timestampSchema('When a worker last had it, to the day; 30 days later it is deleted'),
  has_input_schema: Type.Boolean(),
};

const listedTaskTypeSchema = Type.Object(listedProperties, { title: 'ListedTaskType' });
export type ListedTaskTypeWire = Static<typeof listedTaskTypeSchema>;

export const taskTypeSchema = Type.Object(
  {
    ...listedProperties,
    input_schema: nullable(jsonObjectSchema('The JSON Schema of its parameters')),
  },
  { title: 'TaskType' },
);
export type TaskTypeWire = Static<typeof taskTypeSchema>;

export const taskTypePageSchema = Type.Object(
  { items: Type.Array(listedTaskTypeSchema), next_cursor: nextCursorSchema },
  { title: 'TaskTypePage' },
);
export type TaskTypePageWire = Static<typeof taskTypePageSchema>;

export const taskTypeParamsSchema = Type.Object({ name: nameSchema('The task type') });

export const listTaskTypesQuerySchema = request('ListTaskTypesQuery', pageProperties);
