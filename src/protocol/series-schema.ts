import { Type, type Static } from 'typebox';
import { defaultSeriesMetrics, maxSeriesPoints, seriesMetrics } from '../domain/series.js';
import { nameSchema, nullable, request, textSchema, timestampSchema } from './common-schema.js';

export const seriesQuerySchema = request('SeriesQuery', {
  metric: Type.Optional(
    textSchema(
      `One or more, separated by commas: ${seriesMetrics.join(', ')}. ` +
        `Default: ${defaultSeriesMetrics.join(',')}`,
      2_000,
    ),
  ),
  queue: Type.Optional(nameSchema('Of this queue; absent: the sum over all queues')),
  from: Type.Optional(timestampSchema('Default: an hour before `to`')),
  to: Type.Optional(timestampSchema('Default: now')),
  step: Type.Optional(
    Type.Integer({
      minimum: 60,
      maximum: 30 * 86_400,
      multipleOf: 60,
      description: `Seconds of each piece of time; at most ${maxSeriesPoints} pieces. Default: by the length of time`,
    }),
  ),
});
export type SeriesQueryWire = Static<typeof seriesQuerySchema>;

export const seriesSchema = Type.Object(
  {
    queue: nullable(Type.String({ description: 'Null: the sum over all queues' })),
    from: timestampSchema('When the first piece of time begins'),
    to: timestampSchema('When the last one ends'),
    step_seconds: Type.Integer(),
    times: Type.Array(timestampSchema('When a piece of time begins')),
    values: Type.Record(Type.String(), Type.Array(nullable(Type.Number())), {
      description:
        'By metric, one number for each piece of time. Times are in seconds. Null: a quantile of nothing',
      examples: [{ completed: [12, 0, 3], wait_p95: [0.4, null, 1.2] }],
    }),
  },
  {
    title: 'Series',
    description:
      'Numbers over time, of all servers, until a few seconds ago. Minutes are kept for a week, hours for 90 days.',
  },
);
export type SeriesWire = Static<typeof seriesSchema>;
