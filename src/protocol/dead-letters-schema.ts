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
  pattern: Type.Optional(
    Type.String({
      pattern: '^[0-9a-f]{16}$',
      description: 'Of this pattern, as `GET /api/v1/dlq/analysis` names it',
    }),
  ),
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
    id: Type.String({
      description: 'Names the pattern in filters; the same on every server and after every restart',
    }),
    task_type: Type.String({
      description: '`*` with the code `*`: all that has no other pattern, since there are too many',
    }),
    code: Type.String(),
    message: nullable(
      Type.String({
        description:
          'With placeholders for numbers, ids and the like; null: all messages of this type and ' +
          'code that have no pattern of their own',
      }),
    ),
    count: Type.Integer({ description: 'How many there are now' }),
    queues: Type.Array(Type.Object({ queue: Type.String(), count: Type.Integer() }), {
      description: 'The ten with the most of them',
    }),
    queue_count: Type.Integer({ description: 'In how many queues they are' }),
    hourly: Type.Array(Type.Integer(), {
      description:
        'How many tasks became dead letters in each of the last 24 hours (UTC), the present one last',
    }),
    first_seen: timestampSchema('When the first of them ended; remembered for 90 days'),
    last_seen: timestampSchema('When the last of them ended'),
    retriable_share: Type.Number({
      description: 'Of how many of them another attempt could go better, from 0 to 1',
    }),
    example: Type.Object({ task_id: uuidSchema('One of them'), message: Type.String() }),
  },
  { title: 'DeadLetterPattern' },
);

export const deadLetterAnalysisSchema = Type.Object(
  {
    patterns: Type.Array(patternSchema, {
      description: 'By task type, error code and message, the most frequent first; at most 200',
    }),
  },
  { title: 'DeadLetterAnalysis' },
);
export type DeadLetterAnalysisWire = Static<typeof deadLetterAnalysisSchema>;
