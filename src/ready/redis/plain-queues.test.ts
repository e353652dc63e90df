import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { firstIdAt, type TaskId } from '../../domain/ids.js';
import { priorities } from '../../domain/priority.js';
import { defaultQueueSettings } from '../../domain/queue-settings.js';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import type { Offer, ReadyQueue, TakeRequest } from '../ready-queue.js';
import { ReferenceReadyQueue } from '../reference-ready-queue.contract.js';
import { anyWork, blank } from '../workbench.contract.js';
import { openRedis, type RedisConnection } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';
import { layout } from './script-runner.js';

let connection: RedisConnection;

beforeAll(async () => {
  connection = await openRedis(inject('redisUrl'), silentLog);
});

afterAll(() => connection.close());

/** Both of them, with one clock. */
interface Pair {
  readonly redis: ReadyQueue;
  readonly model: ReadyQueue;
  readonly clock: ManualClock;
  readonly prefix: string;
}

async function openPair(): Promise<Pair> {
  const clock = new ManualClock();
  const prefix = `sluice:{${randomBytes(6).toString('hex')}}:`;
  const options = { connection, bus: new LocalBus(), prefix, clock, log: silentLog };
  const pair = {
    redis: new RedisReadyQueue(options),
    model: new ReferenceReadyQueue(() => clock.nowMs()),
    clock,
    prefix,
  };
  for (const queue of [pair.redis, pair.model]) {
    await queue.beginRestore(1);
    await queue.restore(blank);
  }
  return pair;
}

const minute = 60_000;

/** Most have one priority: a take goes through them without a look at the rest. */
const small = fc.tuple(fc.integer({ min: 1, max: 40 }), fc.nat(19)).map(([number, other]) => ({
  queue: `q${number}`,
  priority: priorities[(other === 0 ? number + 1 : number) % 4] ?? ('medium' as const),
}));
/** More than are kept as one text. */
const large = fc.record({
  queue: fc.constantFrom('large', 'larger'),
  priority: fc.constantFrom('medium' as const, 'low' as const),
});
const sketch = fc
  .tuple(
    fc.oneof({ weight: 3, arbitrary: small }, { weight: 2, arbitrary: large }),
    fc.nat(19),
    fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(40 * minute)),
  )
  .map(([place, type, ageMs]) => ({ ...place, taskType: type === 0 ? 'u' : 't', ageMs }));

const operation = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('offer' as const),
      tasks: fc.array(sketch, { minLength: 20, maxLength: 120 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('take' as const),
      count: fc.oneof(fc.integer({ min: 16, max: 90 }), fc.integer({ min: 1, max: 20 })),
      taskTypes: fc.constantFrom(null, ['t']),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('finish' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('refund' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('remove' as const),
      every: fc.integer({ min: 2, max: 9 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('configure' as const),
      maxConcurrency: fc.option(fc.nat(30)),
      pausedForMs: fc.constantFrom(null, null, minute),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(10 * minute) }),
  },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

interface OutTask {
  readonly taskId: TaskId;
  readonly queue: string;
}

/** What both are asked, and what is known of it. */
class History {
  readonly #pair: Pair;
  readonly #offered: Offer[] = [];
  readonly #out: OutTask[] = [];
  readonly #grants = new Map<ReadyQueue, Map<TaskId, string>>();
  #version = 0;

  constructor(pair: Pair) {
    this.#pair = pair;
    for (const queue of [pair.redis, pair.model]) this.#grants.set(queue, new Map());
  }

  async perform(step: Operation): Promise<void> {
    switch (step.kind) {
      case 'offer':
        return this.#agree(
          (queue) => queue.offer(this.#offers(step.tasks)),
          () => this.#noteOffered(step.tasks),
        );
      case 'take':
        return this.#take({ ...anyWork, count: step.count, taskTypes: step.taskTypes });
      case 'finish':
      case 'refund':
        return this.#release(step.kind);
      case 'remove': {
        const taskIds = this.#offered
          .filter((_, index) => index % step.every === 0)
          .map(({ taskId }) => taskId);
        return this.#agree((queue) => queue.remove(taskIds));
      }
      case 'configure': {
        const { maxConcurrency, pausedForMs } = step;
        const settings = { ...defaultQueueSettings, maxConcurrency, paused: pausedForMs !== null };
        const told = {
          name: 'large',
          version: ++this.#version,
          settings,
          pausedForMs,
          probes: null,
        };
        return this.#agree(async (queue) => {
          return (await queue.configure({ limits: [], queues: [told] })) !== null;
        });
      }
      case 'advance':
        this.#pair.clock.advance(step.ms);
    }
  }

  /** When all of it is gone, nothing of it stays but what is known of the queues. */
  async removeAll(): Promise<void> {
    await this.#pair.redis.remove(this.#offered.map(({ taskId }) => taskId));
    const kinds = await this.kinds();
    const stay = ['entries', 'idle', 'meta', 'out', 'settings', 'sources', 'states'];
    expect(kinds.filter((kind) => !stay.includes(kind))).toEqual([]);
  }

  /** Of keys in Redis that hold more than their mark. */
  async kinds(): Promise<string[]> {
    const { prefix } = this.#pair;
    const found = await connection.client.keys(`${prefix}*`);
    const areBlank = await Promise.all(found.map(isBlank));
    const keys = found.filter((_, index) => areBlank[index] !== true);
    return keys.map((key) => key.slice(`${prefix}${layout}`.length).replace(/:.*/s, ''));
  }

  /** Of every queue; and each task that waits has its place. */
  async compareAll(): Promise<void> {
    const names = [...new Set(this.#offered.map(({ lane }) => lane.queue))];
    for (const name of names) await this.#agree((queue) => queue.live(name));
    const ids = this.#offered.map(({ taskId }) => taskId);
    await this.#agree(async (queue) => [...(await queue.missing(ids))].sort());
    for (const taskId of ids.filter((_, index) => index % 10 === 0)) {
      await this.#agree((queue) => queue.position(taskId, 1_000));
    }
  }

  async #agree(ask: (queue: ReadyQueue) => Promise<unknown>, after?: () => void): Promise<void> {
    const { redis, model } = this.#pair;
    const answer = await ask(redis);
    expect(answer).toEqual(await ask(model));
    after?.();
  }

  #offers(tasks: Extract<Operation, { kind: 'offer' }>['tasks']): Offer[] {
    return tasks.map(({ queue, taskType, priority, ageMs }, index) => {
      const nth = this.#offered.length + index + 1;
      const lane = { queue, taskType, capabilities: [] };
      const eligibleAtMs = this.#pair.clock.nowMs() - ageMs;
      return { taskId: firstIdAt(nth), lane, priority, ageMs, eligibleAtMs, seq: nth, cost: {} };
    });
  }

  #noteOffered(tasks: Extract<Operation, { kind: 'offer' }>['tasks']): void {
    this.#offered.push(...this.#offers(tasks));
  }

  async #take(request: TakeRequest): Promise<void> {
    let out: OutTask[] = [];
    await this.#agree(async (queue) => {
      const answer = await queue.take(request);
      if (answer.kind !== 'taken') return answer;
      out = answer.entries.map(({ taskId, lane }) => ({ taskId, queue: lane.queue }));
      return {
        ...answer,
        entries: answer.entries.map(({ grant, ...entry }) => {
          this.#grants.get(queue)?.set(entry.taskId, grant);
          return entry;
        }),
      };
    });
    this.#out.push(...out);
  }

  /** Half of what is out: confirmed and ended, or given back. */
  async #release(kind: 'finish' | 'refund'): Promise<void> {
    const half = this.#out.splice(0, Math.ceil(this.#out.length / 2));
    await this.#agree(async (queue) => {
      const grants = half.map(({ taskId }) => ({
        taskId,
        grant: this.#grants.get(queue)?.get(taskId) ?? '',
      }));
      if (kind === 'refund') return queue.refund(grants);
      await queue.confirm(grants);
      await queue.finish(
        half.map((one, nth) => ({
          ...{ ...one, grant: grants[nth]?.grant ?? '' },
          ...{ reserved: {}, usage: { tokens: 1 } },
        })),
      );
    });
  }
}

describe('queues without settings', () => {
  it('R-CH10: many of them, with short windows and long ones, are served as by the reference', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 25 }), async (steps) => {
        const pair = await openPair();
        const history = new History(pair);
        for (const step of steps) await history.perform(step);
        await history.compareAll();
        await history.removeAll();
      }),
      { numRuns: 40 },
    );
  });
});

type Sketch = Extract<Operation, { kind: 'offer' }>['tasks'][number];

function tasks(count: number, sketch: Partial<Sketch> = {}): Operation {
  const task: Sketch = { queue: 'q', taskType: 't', priority: 'medium', ageMs: 0, ...sketch };
  return { kind: 'offer', tasks: Array.from({ length: count }, () => task) };
}

/** One task in each of so many queues. */
function oneInEach(queues: number): Operation {
  const names = Array.from({ length: queues }, (_, index) => `q${index}`);
  return {
    kind: 'offer',
    tasks: names.map((queue) => ({ queue, taskType: 't', priority: 'medium', ageMs: 0 })),
  };
}

function repeat(count: number, ...steps: readonly Operation[]): Operation[] {
  return Array.from({ length: count }, () => steps).flat();
}

function take(count: number, taskTypes: ['t'] | null = null): Operation {
  return { kind: 'take', count, taskTypes };
}

/** More than are kept as one text. */
const many = 70;

/** All of them answered as by the reference, and nothing left when all is removed. */
async function expectAgreement(...steps: readonly Operation[]): Promise<void> {
  const history = new History(await openPair());
  for (const step of steps) await history.perform(step);
  await history.compareAll();
  await history.removeAll();
}

describe('a long window', () => {
  it('R-CH2: what is older than its head is found at once, however long it is', async () => {
    await expectAgreement(
      tasks(1, { queue: 'first' }),
      tasks(many),
      // Old enough for high: its queue comes before the other now.
      tasks(1, { ageMs: 25 * minute }),
      take(1),
    );
  });

  it('R-CH2: what is older than its head and becomes urgent later is found then', async () => {
    await expectAgreement(
      tasks(1, { queue: 'first' }),
      tasks(many),
      tasks(1, { ageMs: 15 * minute }),
      { kind: 'advance', ms: 6 * minute },
      take(1),
    );
  });

  it('R-CH8: nothing of it is left when all of it was taken', async () => {
    await expectAgreement(tasks(many), take(many));
  });

  it('R-CH8: that was emptied beside another of its queue is entered anew', async () => {
    await expectAgreement(
      tasks(many),
      tasks(1, { taskType: 'u' }),
      take(many, ['t']),
      tasks(1, { ageMs: 5 * minute }),
    );
  });

  it('R-CH8: that was removed beside another of its queue is entered anew', async () => {
    await expectAgreement(
      tasks(many),
      { kind: 'remove', every: 1 },
      tasks(many),
      tasks(1, { taskType: 'u' }),
      take(many, ['t']),
      tasks(1, { ageMs: 5 * minute }),
    );
  });
});

describe('a take of many', () => {
  it('R-CH2: begins with what became urgent since, wherever that stands', async () => {
    await expectAgreement(
      oneInEach(20),
      tasks(1, { queue: 'aged', ageMs: 20 * minute - 1_000 }),
      { kind: 'advance', ms: 1_000 },
      take(16),
    );
  });

  it('R-CH7: begins with what was paused until now, if its turn was before', async () => {
    await expectAgreement(
      { kind: 'configure', maxConcurrency: null, pausedForMs: minute },
      tasks(1, { queue: 'large' }),
      oneInEach(20),
      take(1),
      { kind: 'advance', ms: minute },
      take(16),
    );
  });

  it('R-CH2: the same when more than one became urgent', async () => {
    await expectAgreement(
      oneInEach(40),
      tasks(2, { queue: 'aged', ageMs: 20 * minute - 1_000 }),
      tasks(2, { queue: 'aged too', priority: 'low', ageMs: 10 * minute - 1_000 }),
      { kind: 'advance', ms: 1_000 },
      take(30),
      take(30),
    );
  });
});

describe('a window with a tail', () => {
  // So many were offered one after the other: 8 and a tail of one.
  const withTail = repeat(9, oneInEach(20));
  // Taken one after the other, until as few are before the tail as may be.
  const withShortHead = [...withTail, ...repeat(4, take(20))];

  it('R-CH1: is taken in its order, up to the last', async () => {
    await expectAgreement(...withTail, ...repeat(9, take(20)));
    await expectAgreement(...withShortHead, oneInEach(20), ...repeat(6, take(20)));
    await expectAgreement(...withShortHead, take(20), oneInEach(20), ...repeat(5, take(20)));
    await expectAgreement(...repeat(20, oneInEach(20)), ...repeat(30, take(20), oneInEach(20)));
  });

  it('R-CH1: is taken in its order by small takes too', async () => {
    await expectAgreement(...withTail, ...repeat(20, take(9)));
    await expectAgreement(...withShortHead, ...repeat(12, take(9)));
  });

  it('R-CH1: takes what is older than its last to its place', async () => {
    const older: Operation[] = [{ kind: 'advance', ms: 10 }, tasks(3, { queue: 'q3', ageMs: 15 })];
    await expectAgreement(...withTail, ...older, ...repeat(20, take(10)));
    await expectAgreement(...withShortHead, ...older, ...repeat(12, take(10)));
  });

  it('R-CH1: loses what is removed, and nothing else', async () => {
    await expectAgreement(...withTail, { kind: 'remove', every: 3 }, ...repeat(10, take(20)));
    await expectAgreement(...withShortHead, { kind: 'remove', every: 7 }, ...repeat(6, take(20)));
  });

  it('R-RE7: is gone after a restore', async () => {
    const pair = await openPair();
    const history = new History(pair);
    for (const step of withTail) await history.perform(step);
    expect(await history.kinds()).toContain('tails');
    await pair.redis.beginRestore(2);
    await pair.redis.restore({ ...blank, generation: 2 });
    expect(await history.kinds()).toEqual(['meta']);
  });

  it('R-CH9: becomes long, so that it is not written anew for each task', async () => {
    const history = new History(await openPair());
    for (const step of repeat(100, tasks(1))) await history.perform(step);
    expect(await history.kinds()).toContain('w');
  });
});

/** Of those that are always there: nothing but its mark. */
async function isBlank(key: string): Promise<boolean> {
  const { client } = connection;
  switch (await client.type(key)) {
    case 'hash':
      return (await client.hlen(key)) === 1 && (await client.hexists(key, '')) === 1;
    case 'zset':
      return (await client.zcard(key)) === 1 && (await client.zscore(key, '')) !== null;
    default:
      return false;
  }
}
