import { Type, type Static } from 'typebox';
import { nullable, timestampSchema } from './common-schema.js';

const heldUpBySchema = Type.Enum(['paused', 'circuit_open', 'rate_limit', 'max_concurrency'], {
  description: 'What would hold up tasks that are due, however many workers there were',
});

export const scalingSchema = Type.Object(
  {
    desired: Type.Integer({
      description: 'Workers that there should be: absolute, within min and max, steady',
    }),
    current: Type.Integer({ description: 'Workers that there are and that share in this work' }),
    min: Type.Integer(),
    max: Type.Integer(),
    waiting: Type.Integer({
      description: 'Tasks that wait for nothing but a worker; counted up to 10,000 of a kind',
    }),
    reason: Type.String({ description: 'Why, for people' }),
    queues: Type.Array(
      Type.Object({
        queue: Type.String(),
        due: Type.Integer({ description: 'Tasks that are due and not taken' }),
        waiting: Type.Integer({
          description: 'Of these, those that wait for nothing but a worker',
        }),
        held_up_by: nullable(heldUpBySchema),
      }),
      { description: 'Those with tasks that are due' },
    ),
    provisioner: Type.Object({
      kind: Type.Enum(['none', 'process', 'webhook']),
      last_asked_at: nullable(timestampSchema('When it was asked last')),
      failing_since: nullable(timestampSchema('Null while it works')),
      error: nullable(Type.String({ description: 'What went wrong the last time' })),
    }),
  },
  { title: 'Scaling' },
);
export type ScalingWire = Static<typeof scalingSchema>;
