import { Type, type Static } from 'typebox';
import {
  nameSchema,
  nextCursorSchema,
  nullable,
  pageProperties,
  request,
  textSchema,
  timestampSchema,
  uuidSchema,
} from './common-schema.js';
import { includeProperties, listedTaskSchema, replaySchema } from './tasks-schema.js';

const filterProperties = {
  queue: Type.Optional(nameSchema('Of this queue')),
  task_type: Type.Optional(nameSchema('Of this type')),
  code: Type.Optional(textSchema('That ended with this error code')),
  since: Type.Optional(timestampSchema('That ended then or later')),
  until: Type.Optional(timestampSchema('That ended before')),
};

export const listDeadLettersQuerySchema = request('ListDeadLettersQuery', {
  ...filterProperties,
  ...pageProperties,
  ...includeProperties,
});

export const deadLetterPageSchema = Type.Object(
  {
    items: Type.Array(listedTaskSchema),
    next_cursor: nextCursorSchema,
    total_count: Type.Integer({
      description: 'How many the filter matches: exact up to 10,000, then a lower bound',
    }),
  },
  { title: 'DeadLetterPage' },
);
export type DeadLetterPageWire = Static<typeof deadLetterPageSchema>;

export const replayDeadLettersSchema = request(
  'ReplayDeadLetters',
  {
    ...filterProperties,
    ...replaySchema.properties,
    per_second: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'How many become due in a second; 100 when absent',
      }),
    ),
    cursor: pageProperties.cursor,
  },
  { examples: [{ queue: 'gpt-4o', code: 'UNAVAILABLE', per_second: 20 }] },
);
export type ReplayDeadLettersWire = Static<typeof replayDeadLettersSchema>;

export const replayedSchema = Type.Object(
  {
    replayed: Type.Integer({ description: 'How many were brought back' }),
    last_due_at: nullable(timestampSchema('When the last of them may run; null: there was none')),
    next_cursor: nullable(
      Type.String({ description: 'Call again with it: there are more; null when there are none' }),
    ),
  },
  { title: 'Replayed' },
);
export type ReplayedWire = Static<typeof replayedSchema>;

const patternSchema = Type.Object(
  {
    queue: Type.String(),
    task_type: Type.String(),
    code: Type.String(),
    count: Type.Integer(),
    first_seen: timestampSchema('When the first of them ended'),
    last_seen: timestampSchema('When the last of them ended'),
    retriable: Type.Boolean({ description: 'Whether another attempt could go better' }),
    example: Type.Object({ task_id: uuidSchema('One of them'), message: Type.String() }),
  },
  { title: 'DeadLetterPattern' },
);

export const deadLetterAnalysisSchema = Type.Object(
  { patterns: Type.Array(patternSchema, { description: 'By queue, task type and error code' }) },
  { title: 'DeadLetterAnalysis' },
);
export type DeadLetterAnalysisWire = Static<typeof deadLetterAnalysisSchema>;
