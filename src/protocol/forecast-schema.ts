import { Type, type Static } from 'typebox';
import { paces, standstills } from '../domain/forecast.js';
import { nullable, timestampSchema } from './common-schema.js';

export const forecastSchema = Type.Object(
  {
    queue: Type.String(),
    waiting: Type.Integer({ description: 'Tasks in line' }),
    inflow_per_minute: Type.Number({
      description: 'Tasks that came in line over the last five minutes, retries included',
    }),
    drain_per_minute: nullable(
      Type.Number({ description: 'Tasks that can start; null: unknown, or none can' }),
    ),
    pace: nullable(
      Type.Enum([...paces], {
        description:
          'What decides that: a limit, max_concurrency, the slots of the workers that can do it, or how many started in ' +
          'the last minute. A limit and workers that other queues share are counted as if they were for this queue alone',
      }),
    ),
    standstill: nullable(
      Type.Enum([...standstills], {
        description:
          'Why the line does not get shorter: paused until somebody resumes it, no active worker can do any of it, nothing ' +
          'started for a minute although it might, or nothing is known yet',
      }),
    ),
    empty_at: nullable(
      timestampSchema('When the last task of the line starts, if none comes; null: see standstill'),
    ),
    empty_at_with_inflow: nullable(
      timestampSchema('The same, if tasks go on coming as they did; null: as many come as go'),
    ),
    deadlines: Type.Object(
      {
        looked_at: Type.Integer({ description: 'The next tasks in line, at most 1,000' }),
        with_deadline: Type.Integer({ description: 'Those of them that have a dispatch deadline' }),
        missed: nullable(
          Type.Integer({
            description: 'Those that will pass it before they start; null: that is unknown',
          }),
        ),
        first_missed_at: nullable(timestampSchema('The first of these deadlines')),
      },
      { description: 'Of the next tasks in line' },
    ),
  },
  {
    title: 'Forecast',
    description:
      'When a queue will be empty, and which dispatch deadlines it will miss, if nothing changes.',
  },
);
export type ForecastWire = Static<typeof forecastSchema>;
