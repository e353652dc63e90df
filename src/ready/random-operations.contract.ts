import fc from 'fast-check';
import { firstIdAt } from '../domain/ids.js';
import { capabilitySet } from '../domain/lane.js';
import { priorities } from '../domain/priority.js';
import type { QueueLimit, RateLimit } from '../domain/queue-settings.js';
import { ownBucket, sharedBucket } from '../domain/token-bucket.js';

const queueNames = ['a', 'b', 'c'];
const sharedNames = ['x', 'y'];
const units = ['requests', 'tokens'];
const taskTypes = ['s', 't'];
const capabilities = ['gpu', 'large'];
const taskIds = Array.from({ length: 40 }, (_, index) => firstIdAt(index + 1));
const buckets = [
  ...queueNames.flatMap((queue) => units.map((unit) => ownBucket(queue, unit))),
  ...sharedNames.map(sharedBucket),
];

const taskId = fc.constantFrom(...taskIds);
const queueName = fc.constantFrom(...queueNames);
const lane = fc.record({
  queue: queueName,
  taskType: fc.constantFrom(...taskTypes),
  capabilities: fc.subarray(capabilities).map(capabilitySet),
});
const priority = fc.constantFrom(...priorities);
const threshold = fc.option(fc.nat(60));
const cost = fc.oneof(fc.constant({}), fc.record({ tokens: fc.nat(6) }));
const usage = fc.option(fc.record({ requests: fc.nat(3), tokens: fc.nat(12) }));

/** Small numbers: then waits are some milliseconds to some seconds. */
function rateLimit(unit: string): fc.Arbitrary<RateLimit> {
  return fc.record({
    unit: fc.constant(unit),
    rate: fc.integer({ min: 1, max: 50 }),
    perSeconds: fc.constantFrom(1, 2),
    burst: fc.option(fc.integer({ min: 1, max: 12 })),
  });
}

const ownLimit = (unit: string) => fc.option(rateLimit(unit), { freq: 1 });
const queueLimits = fc
  .tuple(ownLimit('requests'), ownLimit('tokens'), fc.subarray([...sharedNames, 'unknown']))
  .map(([requests, tokens, shared]): QueueLimit[] => [
    ...shared.map((use) => ({ use })),
    ...[tokens, requests].filter((limit) => limit !== null),
  ]);

const sharedLimit = fc.record({
  name: fc.constantFrom(...sharedNames),
  versionsBack: fc.nat(2),
  limit: fc.constantFrom(...units).chain(rateLimit),
});

const queueChange = fc.record({
  name: queueName,
  versionsBack: fc.nat(4),
  limits: fc.oneof(fc.constant<QueueLimit[]>([]), { weight: 3, arbitrary: queueLimits }),
  maxConcurrency: fc.option(fc.nat(3), { freq: 2 }),
  maxReady: fc.constantFrom(0, 1, 2, 10_000, 10_000),
  paused: fc.boolean(),
  pausedForMs: fc.option(fc.integer({ min: -20, max: 60 })),
  ageing: fc.record({
    lowToMediumMs: threshold,
    lowToHighMs: threshold,
    mediumToHighMs: threshold,
  }),
});

const operation = fc.oneof(
  {
    weight: 40,
    arbitrary: fc.record({
      kind: fc.constant('offer' as const),
      offers: fc.array(fc.record({ taskId, lane, priority, ageMs: fc.nat(80), cost }), {
        maxLength: 8,
      }),
    }),
  },
  {
    weight: 60,
    arbitrary: fc.record({
      kind: fc.constant('take' as const),
      request: fc.record({
        taskTypes: fc.option(fc.subarray(taskTypes)),
        capabilities: fc.subarray(capabilities),
        queues: fc.option(fc.subarray([...queueNames, 'unknown']), { freq: 2 }),
        count: fc.integer({ min: 1, max: 5 }),
      }),
    }),
  },
  {
    weight: 25,
    arbitrary: fc.record({
      kind: fc.constantFrom('confirm', 'refund', 'remove', 'missing'),
      taskIds: fc.array(taskId, { maxLength: 6 }),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('finish' as const),
      finished: fc.array(fc.record({ taskId, queue: queueName, reserved: cost, usage }), {
        maxLength: 6,
      }),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({ kind: fc.constant('configure' as const), queue: queueChange }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('limit' as const), limit: sharedLimit }),
  },
  { weight: 30, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(40) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(3000) }) },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('position' as const),
      taskId,
      limit: fc.integer({ min: 1, max: 12 }),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({ kind: fc.constant('live' as const), queue: queueName }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('room' as const), lane, priority }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('listOut' as const),
      limit: fc.integer({ min: 1, max: 5 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('levels' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('restore' as const),
      running: fc.array(fc.record({ taskId, queue: queueName }), { maxLength: 4 }),
      limits: fc.array(sharedLimit, { maxLength: 2 }),
      queues: fc.array(queueChange, { maxLength: 2 }),
      levels: fc.array(
        fc.record({
          bucket: fc.constantFrom(...buckets),
          tokens: fc.integer({ min: -12, max: 40 }).map((quarters) => quarters / 4),
        }),
        { maxLength: 4 },
      ),
    }),
  },
);

export type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;
export type QueueChange = typeof queueChange extends fc.Arbitrary<infer Value> ? Value : never;
export type SharedLimit = typeof sharedLimit extends fc.Arbitrary<infer Value> ? Value : never;

/** Half of them without shared limits: in those, every wake-up is compared. */
export const history: fc.Arbitrary<Operation[]> = fc
  .tuple(fc.boolean(), fc.array(operation, { maxLength: 80, size: 'max' }))
  .map(([isShared, operations]) => (isShared ? operations : operations.map(withoutShared)));

function withoutShared(step: Operation): Operation {
  switch (step.kind) {
    case 'limit':
      return { kind: 'levels' };
    case 'configure':
      return { ...step, queue: withOwnLimits(step.queue) };
    case 'restore':
      return { ...step, limits: [], queues: step.queues.map(withOwnLimits) };
    default:
      return step;
  }
}

function withOwnLimits(change: QueueChange): QueueChange {
  return { ...change, limits: change.limits.filter((limit) => !('use' in limit)) };
}
