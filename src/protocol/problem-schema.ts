import { Type, type Static } from 'typebox';

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
  },
  { title: 'Problem', description: 'Why a call was refused (application/problem+json).' },
);
export type ProblemWire = Static<typeof problemSchema>;
