import { Type, type Static } from 'typebox';
import { limitBounds } from '../domain/limit-faults.js';
import {
  nameSchema,
  nullable,
  request,
  nextCursorSchema,
  pageProperties,
  timestampSchema,
} from './common-schema.js';

const rateProperties = {
  unit: nameSchema('What is counted: requests, tokens, …'),
  rate: Type.Integer({
    minimum: 1,
    maximum: limitBounds.rate,
    description: 'At most so many …',
  }),
  per_seconds: Type.Integer({
    minimum: 1,
    maximum: limitBounds.perSeconds,
    description: '… in any window of so many seconds',
  }),
  burst: Type.Optional(
    nullable(
      Type.Integer({
        minimum: 1,
        maximum: limitBounds.burst,
        description: 'How many may pass at once; the bound is then rate + burst',
      }),
    ),
  ),
};

export const rateLimitSchema = request('RateLimit', rateProperties, {
  examples: [{ unit: 'requests', rate: 500, per_seconds: 60 }],
});
export type RateLimitWire = Static<typeof rateLimitSchema>;

const inForceSchema = (meanwhile: string) =>
  Type.Boolean({
    description: `false: the ready queue could not be told of the newest settings yet. ${meanwhile}`,
  });

const sharedLimitSchema = request('SharedLimit', {
  use: nameSchema('The name of a limit that several queues share'),
});

const queueLimitSchema = Type.Union([rateLimitSchema, sharedLimitSchema]);
export type QueueLimitWire = Static<typeof queueLimitSchema>;

const ageSchema = (description: string) =>
  Type.Optional(nullable(Type.Number({ minimum: 0, maximum: 315_360_000, description })));

const ageingSchema = request('Ageing', {
  low_to_medium_seconds: ageSchema('600 by default; null: never'),
  low_to_high_seconds: ageSchema('1,800 by default; null: never'),
  medium_to_high_seconds: ageSchema('1,200 by default; null: never'),
});
export type AgeingWire = Static<typeof ageingSchema>;

const countSchema = (description: string) =>
  Type.Integer({ minimum: 1, maximum: 1e9, description });

const rateNumberSchema = (description: string) =>
  Type.Integer({ minimum: 1, maximum: limitBounds.rate, description });

const limitListSchema = Type.Array(queueLimitSchema, {
  maxItems: 20,
  description: 'All limits of the queue',
});

const commonRatesSchema = request(
  'CommonRates',
  {
    rps: Type.Optional(rateNumberSchema('Requests a second; excludes rpm')),
    rpm: Type.Optional(rateNumberSchema('Requests a minute; excludes rps')),
    tpm: Type.Optional(rateNumberSchema('Tokens a minute')),
  },
  { description: 'Rates by their usual names: each is a limit of its unit, without a burst' },
);

const commonRatesChangeSchema = request(
  'CommonRatesChange',
  {
    rps: Type.Optional(nullable(rateNumberSchema('Requests a second; null: no such limit'))),
    rpm: Type.Optional(nullable(rateNumberSchema('Requests a minute; null: no such limit'))),
    tpm: Type.Optional(nullable(rateNumberSchema('Tokens a minute; null: no such limit'))),
  },
  {
    description:
      'Each replaces the limit of its unit, and null takes it away; limits of other units stay',
  },
);

const settingsProperties = {
  max_concurrency: Type.Optional(nullable(countSchema('Running at once, in the whole cluster'))),
  max_ready: Type.Optional(countSchema('Entries in the ready queue for each lane and priority')),
  max_active: Type.Optional(
    nullable(countSchema('Tasks that have not ended; further ones are refused')),
  ),
  max_lanes: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description:
        'Combinations of task type and required capabilities; a task of a further one is refused. 10,000 by default',
    }),
  ),
  paused: Type.Optional(Type.Boolean({ description: 'Nothing of it is taken' })),
  paused_until: Type.Optional(
    nullable(timestampSchema('With "paused": goes on by itself then; null: until resumed')),
  ),
  ageing: Type.Optional(nullable(ageingSchema)),
};

export const queueDraftSchema = request(
  'QueueSettings',
  {
    limits: Type.Optional(Type.Union([limitListSchema, commonRatesSchema])),
    ...settingsProperties,
  },
  {
    description: 'The whole configuration of a queue: what is absent gets its default.',
    examples: [
      {
        limits: [
          { unit: 'requests', rate: 500, per_seconds: 60 },
          { unit: 'tokens', rate: 30000, per_seconds: 60 },
          { use: 'openai-account' },
        ],
        max_concurrency: 50,
      },
      { limits: { rpm: 500, tpm: 30000 }, max_concurrency: 50 },
    ],
  },
);
export type QueueDraftWire = Static<typeof queueDraftSchema>;

export const queueChangeSchema = request(
  'QueueChange',
  {
    limits: Type.Optional(Type.Union([limitListSchema, commonRatesChangeSchema])),
    ...settingsProperties,
  },
  {
    minProperties: 1,
    description:
      'What changes of the configuration: what is absent stays. A list of limits replaces all limits.',
    examples: [{ max_concurrency: 5 }, { limits: { rpm: 600 } }],
  },
);
export type QueueChangeWire = Static<typeof queueChangeSchema>;

const byPriority = (description: string) =>
  Type.Object(
    { high: Type.Integer(), medium: Type.Integer(), low: Type.Integer() },
    { description },
  );

const limitUseSchema = Type.Object(
  {
    limit: nullable(Type.String({ description: "The name of a shared limit; null: the queue's" })),
    unit: Type.String(),
    used: Type.Integer({
      description: 'Granted in the window up to now, as it was settled, to a tenth of the window',
    }),
    allowed: Type.Integer({ description: 'At most so many …' }),
    per_seconds: Type.Integer({
      description: '… in this window; longer than set while the service of the queue recovers',
    }),
    counted_seconds: Type.Number({
      description: 'Of the window, what was counted: less when the ready queue was filled later',
    }),
    next_in_ms: Type.Number({
      description: 'Until a task that costs one of the unit may start; 0: now',
    }),
  },
  { title: 'LimitUse', description: 'A limit in the window up to now.' },
);
export type LimitUseWire = Static<typeof limitUseSchema>;

const queueLiveSchema = Type.Object(
  {
    depth: byPriority('Tasks that could be taken, by submitted priority'),
    effective_depth: byPriority(
      'The same, by what their age makes of it; with more than 250 lanes, of some of them',
    ),
    backlog: Type.Integer({
      description: 'Tasks in line that the ready queue does not hold',
    }),
    active: nullable(
      Type.Integer({ description: 'Tasks that have not ended; null without max_active' }),
    ),
    running: Type.Integer(),
    tokens: Type.Record(Type.String(), Type.Number(), {
      description: 'Left of each unit, in the limit that has least; below zero: owed',
    }),
    next_token_in_ms: nullable(
      Type.Number({
        description: 'Until there is a whole token of each unit; 0: there is; null: no limits',
      }),
    ),
    usage: Type.Array(limitUseSchema, {
      description: 'Of each limit what was used of it, in the order of the settings',
    }),
    recovery_factor: Type.Number({
      description:
        '1; less while its service recovers: 0.25, then 0.5 of its own limits and of what ran before',
    }),
    paused_until: nullable(timestampSchema('When it goes on by itself, or is tried')),
    paused_why: nullable(Type.String({ description: 'An operator, or what its service said' })),
    circuit: Type.Enum(['closed', 'open', 'half_open'], {
      description: 'Half open: a few tasks try whether the service answers, or it recovers',
    }),
    oldest_age_seconds: nullable(
      Type.Number({ description: 'With more than 250 lanes, a lower bound' }),
    ),
    last_minute: Type.Object({
      started: Type.Integer(),
      completed: Type.Integer(),
      failed: Type.Integer(),
    }),
  },
  { title: 'QueueLive', description: 'How the queue is doing now.' },
);
export type QueueLiveWire = Static<typeof queueLiveSchema>;

export const queueSchema = Type.Object(
  {
    name: Type.String(),
    version: Type.Integer({ description: 'Grows with each change of the configuration' }),
    in_force: inForceSchema('Until it is, nothing of the queue starts'),
    limits: Type.Array(queueLimitSchema),
    max_concurrency: nullable(Type.Integer()),
    max_ready: Type.Integer(),
    max_active: nullable(Type.Integer()),
    max_lanes: Type.Integer(),
    paused: Type.Boolean(),
    paused_until: nullable(timestampSchema('Null while paused: until resumed')),
    ageing: nullable(ageingSchema),
    live: queueLiveSchema,
  },
  { title: 'Queue' },
);
export type QueueWire = Static<typeof queueSchema>;

export const queuePageSchema = Type.Object(
  { items: Type.Array(queueSchema), next_cursor: nextCursorSchema },
  { title: 'QueuePage' },
);
export type QueuePageWire = Static<typeof queuePageSchema>;

export const queueParamsSchema = Type.Object({ name: nameSchema('The queue; "/" as %2F') });

export const listQueuesQuerySchema = request('ListQueuesQuery', pageProperties);

export const pauseSchema = request(
  'Pause',
  { until: Type.Optional(timestampSchema('Goes on by itself then; absent: until resumed')) },
  { examples: [{ until: '2030-01-31T12:00:00.000Z' }] },
);

export const limitSchema = Type.Object(
  {
    name: Type.String(),
    ...rateProperties,
    burst: nullable(Type.Integer()),
    in_force: inForceSchema('Until it is, nothing starts of the queues that use the limit'),
  },
  { title: 'Limit', description: 'A limit that several queues share.' },
);
export type LimitWire = Static<typeof limitSchema>;

export const limitPageSchema = Type.Object(
  { items: Type.Array(limitSchema), next_cursor: nextCursorSchema },
  { title: 'LimitPage' },
);

export const limitParamsSchema = Type.Object({ name: nameSchema('The limit; "/" as %2F') });
