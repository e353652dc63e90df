import { Type, type Static } from 'typebox';
import { nullable } from './common-schema.js';

const depthSchema = Type.Object({
  depth: Type.Integer(),
  oldest_age_seconds: nullable(Type.Number()),
});

export const statisticsSchema = Type.Object(
  {
    queues: Type.Object(
      { high: depthSchema, medium: depthSchema, low: depthSchema },
      {
        description:
          'Tasks that are due and not taken, by effective priority; right to the last few seconds',
      },
    ),
    workers: Type.Object({
      active: Type.Integer(),
      draining: Type.Integer(),
      dead: Type.Integer(),
      total_capacity: Type.Integer(),
      used_capacity: Type.Integer(),
    }),
    age: Type.Object({
      p50_seconds: nullable(Type.Number()),
      p95_seconds: nullable(Type.Number()),
      oldest_seconds: nullable(Type.Number()),
    }),
    throughput: Type.Object({
      completed_last_minute: Type.Integer(),
      failed_last_minute: Type.Integer(),
      avg_task_duration_seconds: nullable(Type.Number()),
    }),
    admission: Type.Object(
      { active: Type.Integer(), max_active: Type.Integer() },
      { description: 'Tasks that have not ended, and from how many on all are refused' },
    ),
    recovery: Type.Object({
      leases_lapsed_last_hour: Type.Integer(),
      timeouts_last_hour: Type.Integer(),
      reoffered_last_hour: Type.Integer(),
    }),
  },
  { title: 'Statistics' },
);
export type StatisticsWire = Static<typeof statisticsSchema>;
