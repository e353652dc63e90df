import fc from 'fast-check';
import { firstIdAt } from '../domain/ids.js';
import { capabilitySet } from '../domain/lane.js';
import { priorities } from '../domain/priority.js';
import type { QueueLimit, RateLimit } from '../domain/queue-settings.js';
import { ownBucket, sharedBucket } from '../domain/token-bucket.js';

/** What there is in a history. In a small world operations meet each other more often. */
interface World {
  readonly queues: readonly string[];
  readonly taskTypes: readonly string[];
  readonly capabilities: readonly string[];
  /** Limits that queues use by name, known ones and others. */
  readonly shared: readonly string[];
  readonly configureWeight: number;
  /** Pauses, full windows and slots that run out, besides the limits. */
  readonly isEventful: boolean;
  /** Probes instead of limits, and what is taken is often refused. */
  readonly isProbing: boolean;
}

const eventful: World = {
  queues: ['a', 'b', 'c'],
  taskTypes: ['s', 't'],
  capabilities: ['gpu', 'large'],
  shared: [],
  configureWeight: 20,
  isEventful: true,
  isProbing: false,
};
const eventfulShared: World = { ...eventful, shared: ['x', 'y', 'unknown'] };
const oneQueue: World = {
  queues: ['a'],
  taskTypes: ['r', 's', 't'],
  capabilities: [],
  shared: [],
  configureWeight: 2,
  isEventful: false,
  isProbing: false,
};
const oneLimit: World = { ...oneQueue, queues: ['a', 'b', 'c'], shared: ['x'] };

/** Three windows, most of them full: their lines are left, fed and pushed out of. */
const crowded: World = { ...eventful, queues: ['a'], taskTypes: ['t'], capabilities: [] };

const probing: World = {
  ...oneQueue,
  queues: ['a', 'b'],
  configureWeight: 20,
  isProbing: true,
};

const units = ['requests', 'tokens'];
const sharedNames = ['x', 'y'];
const taskIds = Array.from({ length: 40 }, (_, index) => firstIdAt(index + 1));
const taskId = fc.constantFrom(...taskIds);
const priority = fc.constantFrom(...priorities);
const cost = fc.oneof(fc.constant({}), { weight: 3, arbitrary: fc.record({ tokens: fc.nat(6) }) });
const usage = fc.option(fc.record({ requests: fc.nat(3), tokens: fc.nat(12) }));

/** Small numbers: then waits are some milliseconds to some seconds. */
function rateLimit(unit: string): fc.Arbitrary<RateLimit> {
  return fc.record({
    unit: fc.constant(unit),
    rate: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 30, max: 90 })),
    perSeconds: fc.constantFrom(1, 2),
    burst: fc.option(fc.integer({ min: 1, max: 12 })),
  });
}

function queueLimits({ shared, isEventful, isProbing }: World): fc.Arbitrary<QueueLimit[]> {
  if (isProbing) return fc.constant([]);
  const uses = isEventful ? fc.subarray([...shared]) : fc.constant([...shared]);
  const ownLimit = (unit: string) => fc.option(rateLimit(unit), { freq: 3 });
  return fc
    .tuple(uses, ownLimit('tokens'), ownLimit('requests'))
    .map(([names, ...own]) => [
      ...names.map((use) => ({ use })),
      ...own.filter((limit) => limit !== null),
    ]);
}

/** Seldom, and where little is configured not so few: nothing is taken when they are gone. */
function probes({ isEventful, isProbing }: World): fc.Arbitrary<number | null> {
  if (isProbing) return fc.option(fc.nat(4), { freq: 9 });
  return fc.oneof(
    { weight: isEventful ? 2 : 5, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.nat(isEventful ? 3 : 12) },
  );
}

function queueChange(world: World, names: readonly string[] = world.queues) {
  const threshold = fc.option(fc.nat(60));
  const never = fc.constant(null);
  const limits = queueLimits(world);
  return fc.record({
    name: fc.constantFrom(...names),
    versionsBack: fc.nat(world.isEventful ? 4 : 1),
    limits: world.isEventful ? fc.oneof(fc.constant<QueueLimit[]>([]), limits) : limits,
    maxConcurrency: world.isEventful ? fc.option(fc.nat(3), { freq: 2 }) : never,
    maxReady: world.isEventful ? fc.constantFrom(0, 1, 2, 10_000) : fc.constant(10_000),
    paused: world.isEventful ? fc.boolean() : fc.nat(4).map((one) => one === 0),
    pausedForMs: fc.option(fc.integer({ min: -20, max: 60 }), { freq: world.isEventful ? 2 : 9 }),
    probes: probes(world),
    ageing: fc.record({
      lowToMediumMs: threshold,
      lowToHighMs: threshold,
      mediumToHighMs: threshold,
    }),
  });
}

function sharedLimit(names = sharedNames) {
  return fc.record({
    name: fc.constantFrom(...names),
    versionsBack: fc.nat(2),
    limit: fc.constantFrom(...units).chain(rateLimit),
  });
}

/** Of an uneventful world nothing is left out. */
function someOrEach<T>(
  { isEventful }: World,
  names: readonly string[],
  make: (names: string[]) => fc.Arbitrary<T>,
): fc.Arbitrary<T[]> {
  if (names.length === 0) return fc.constant([]);
  if (isEventful) return fc.array(make([...names]), { maxLength: 3 });
  return fc.tuple(...names.map((name) => make([name])));
}

/** How every history begins, and some go on. */
function restoring(world: World) {
  const buckets = [
    ...world.queues.flatMap((queue) => units.map((unit) => ownBucket(queue, unit))),
    ...sharedNames.map(sharedBucket),
  ];
  const behind = fc.array(windowIn(world), { maxLength: 3 });
  return fc.record({
    kind: fc.constant('restore' as const),
    behind,
    running: fc.array(
      fc.record({ taskId, grant: fc.constant('none'), queue: fc.constantFrom(...world.queues) }),
      {
        maxLength: 4,
      },
    ),
    limits: someOrEach(world, world.shared, (names) => sharedLimit(names)),
    queues: someOrEach(world, world.queues, (names) => queueChange(world, names)),
    levels: fc.array(
      fc.record({
        bucket: fc.constantFrom(...buckets),
        tokens: fc.integer({ min: -12, max: 40 }).map((quarters) => quarters / 4),
      }),
      { maxLength: 4 },
    ),
  });
}

function laneIn({ queues, taskTypes, capabilities }: World) {
  return fc.record({
    queue: fc.constantFrom(...queues),
    taskType: fc.constantFrom(...taskTypes),
    capabilities: fc.subarray([...capabilities]).map(capabilitySet),
  });
}

function windowIn(world: World) {
  return fc.record({ lane: laneIn(world), priority });
}

function takeRequest({ queues, taskTypes, capabilities }: World) {
  return fc.record({
    taskTypes: fc.oneof(
      fc.constant(null),
      fc.subarray([...taskTypes], { minLength: 1 }),
      fc.constantFrom(...taskTypes).map((one) => [one]),
    ),
    capabilities: fc.subarray([...capabilities]),
    queues: fc.oneof(
      { weight: 3, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.subarray([...queues, 'unknown']) },
    ),
    count: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 5 })),
  });
}

function operationIn(world: World) {
  const queue = fc.constantFrom(...world.queues);
  const lane = laneIn(world);
  const ageMs = fc.nat(80);
  const offers = fc.array(fc.record({ taskId, lane, priority, ageMs, cost }), { maxLength: 8 });
  const newcomers = fc.uniqueArray(fc.record({ taskId, lane, priority, cost }), {
    maxLength: 5,
    selector: (newcomer) => newcomer.taskId,
  });
  const fed = fc.array(fc.record({ taskId, ageMs, cost }), { maxLength: 4 });
  const places = fc.array(fc.record({ lane, priority, ageMs }), { maxLength: 2 });
  const isOfLast = fc.boolean();
  const finished = fc.array(fc.record({ taskId, isOfLast, queue, reserved: cost, usage }), {
    maxLength: 16,
  });
  const request = takeRequest(world);
  return fc.oneof(
    { weight: 40, arbitrary: fc.record({ kind: fc.constant('offer' as const), offers }) },
    { weight: 20, arbitrary: fc.record({ kind: fc.constant('announce' as const), newcomers }) },
    { weight: 90, arbitrary: fc.record({ kind: fc.constant('take' as const), request }) },
    {
      weight: 25,
      arbitrary: fc.record({
        kind: fc.constantFrom('confirm', 'refund', 'remove', 'missing'),
        taskIds: fc.array(taskId, { maxLength: 6 }),
      }),
    },
    {
      weight: world.isProbing ? 25 : 0,
      arbitrary: fc.record({
        kind: fc.constant('refund' as const),
        taskIds: fc.array(taskId, { maxLength: 20 }),
      }),
    },
    { weight: 20, arbitrary: fc.record({ kind: fc.constant('finish' as const), finished }) },
    {
      weight: world.configureWeight,
      arbitrary: fc.record({ kind: fc.constant('configure' as const), queue: queueChange(world) }),
    },
    {
      weight: world.shared.length === 0 ? 0 : world.configureWeight,
      arbitrary: fc.record({ kind: fc.constant('limit' as const), limit: sharedLimit() }),
    },
    { weight: 40, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(60) }) },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(3e3) }) },
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('position' as const),
        taskId,
        limit: fc.integer({ min: 1, max: 12 }),
      }),
    },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('live' as const), queue }) },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('survey' as const) }) },
    {
      weight: 16,
      arbitrary: fc.record({
        kind: fc.constant('look' as const),
        lane,
        priority,
        toFeed: fc.boolean(),
      }),
    },
    {
      weight: 16,
      arbitrary: fc.record({
        kind: fc.constant('feed' as const),
        window: windowIn(world),
        offers: fed,
        hasNext: fc.boolean(),
      }),
    },
    {
      weight: world.isEventful ? 4 : 1,
      arbitrary: fc.record({ kind: fc.constant('leave' as const), places }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('listOut' as const),
        limit: fc.integer({ min: 1, max: 5 }),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('levels' as const) }) },
    { weight: 1, arbitrary: restoring(world) },
  );
}

type ValueOf<A> = A extends fc.Arbitrary<infer Value> ? Value : never;

export type Operation = ValueOf<ReturnType<typeof operationIn>>;
export type QueueChange = ValueOf<ReturnType<typeof queueChange>>;
export type SharedLimit = ValueOf<ReturnType<typeof sharedLimit>>;

function historyIn(world: World): fc.Arbitrary<Operation[]> {
  const operations = fc.array(operationIn(world), { minLength: 30, maxLength: 120, size: 'max' });
  return fc.tuple(restoring(world), operations).map(([first, rest]) => [first, ...rest]);
}

export const history = fc.oneof(
  historyIn(eventful),
  historyIn(eventfulShared),
  historyIn(crowded),
  historyIn(oneQueue),
  historyIn(oneLimit),
  historyIn(probing),
);
