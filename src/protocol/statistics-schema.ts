import { Type, type Static } from 'typebox';
import { nullable } from './common-schema.js';
import { queueSchema } from './queues-schema.js';
import { workerSchema } from './workers-schema.js';

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
    running: Type.Integer({ description: 'Tasks that run now; right to the last few seconds' }),
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

const totalCountSchema = Type.Integer({ description: 'How many there are, also those not listed' });

export const attentionSchema = Type.Object(
  {
    queues: Type.Object(
      {
        items: Type.Array(queueSchema, { description: 'The worst 20, the worst first' }),
        total_count: totalCountSchema,
      },
      {
        description:
          'Queues that are stopped by their circuit, paused or recovering, whose settings are not in force, ' +
          'or whose oldest task has waited for 10 minutes',
      },
    ),
    workers: Type.Object(
      { items: Type.Array(workerSchema), total_count: totalCountSchema },
      { description: 'Workers that are suspended: 20 of them at most' },
    ),
  },
  { title: 'Attention' },
);
export type AttentionWire = Static<typeof attentionSchema>;
