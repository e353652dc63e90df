import { Type, type Static } from 'typebox';
import { nullable } from './common-schema.js';

/** RFC 9457, with a stable code. */
export const problemSchema = Type.Object(
  {
    type: Type.String({ description: 'Where the code is explained' }),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.String({ description: 'Stable: see the catalogue of errors' }),
    detail: Type.String({ description: 'What was wrong this time' }),
    instance: Type.Optional(Type.String({ description: 'The path that was asked' })),
    errors: Type.Optional(
      Type.Array(Type.Object({ path: Type.String(), message: Type.String() }), {
        description: 'Each field that was wrong, by its JSON pointer',
      }),
    ),
    retry_after_seconds: Type.Optional(Type.Number()),
    ceiling: Type.Optional(
      Type.Object(
        {
          queue: nullable(Type.String({ description: 'Null: all queues together' })),
          limit: Type.Integer({
            description: 'From how many on a task of this priority is refused',
          }),
          active: Type.Integer({ description: 'How many had not ended' }),
        },
        { description: 'The ceiling on active tasks that it met' },
      ),
    ),
  },
  { title: 'Problem', description: 'Why a call was refused (application/problem+json).' },
);
export type ProblemWire = Static<typeof problemSchema>;
