import { Type, type Static } from 'typebox';
import { pushbackEffects } from '../domain/pushback.js';
import {
  nextCursorSchema,
  nullable,
  pageProperties,
  request,
  timestampSchema,
  uuidSchema,
} from './common-schema.js';

export const listPushbacksQuerySchema = request('ListPushbacksQuery', pageProperties);

const pushbackSchema = Type.Object(
  {
    at: timestampSchema('When a worker reported it'),
    queue: Type.String(),
    task_id: uuidSchema('The task that was called for'),
    task_type: Type.String(),
    worker_id: uuidSchema('The worker that called'),
    code: Type.String({
      description: 'RATE_LIMITED, UNAVAILABLE, QUOTA_EXHAUSTED, UNAUTHORIZED …',
    }),
    message: Type.String({ description: 'What the service said; the first 500 characters' }),
    retry_after_ms: nullable(Type.Integer({ description: 'The Retry-After of the service' })),
    answers: Type.Integer({
      description: 'How many such answers of the queue the server got in that second; one is kept',
    }),
    became: Type.Enum([...pushbackEffects], {
      description:
        '`goes_on`: the task waits, the queue does not; `stopped`: the queue stands still, or for longer; ' +
        '`was_stopped`: it stood still already',
    }),
    until: nullable(timestampSchema('Until when the queue stands still; null: it goes on')),
  },
  { title: 'Pushback', description: 'An answer of a service that wants no calls for now.' },
);
export type PushbackWire = Static<typeof pushbackSchema>;

export const pushbackPageSchema = Type.Object(
  { items: Type.Array(pushbackSchema), next_cursor: nextCursorSchema },
  { title: 'PushbackPage' },
);
export type PushbackPageWire = Static<typeof pushbackPageSchema>;
