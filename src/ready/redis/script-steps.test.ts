import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startRedis, type RunningRedis } from '../../../test/support/services/redis-server.js';
import type { Cost, RateLimit } from '../../domain/queue-settings.js';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import type { Finished, Offer, Taken, TakeRequest } from '../ready-queue.js';
import { Workbench } from '../workbench.contract.js';
import { openRedis, type RedisConnection } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';
import { ScriptRunner } from './script-runner.js';
import { countSteps } from './step-count.contract.js';
import { mostSteps } from './step-bound.js';

/** As many as a queue may have. */
const maxLimits = 20;

let server: RunningRedis;
let connection: RedisConnection;
let counted: RedisConnection;
let longest: ReturnType<typeof countSteps>['longest'];
let prefixes = 0;

beforeAll(async () => {
  server = await startRedis();
  connection = await openRedis(server.url, silentLog);
  ({ counted, longest } = countSteps(connection));
});

afterAll(async () => {
  await connection.close();
  await server.stop();
});

/** A ready queue of its own, in which every script counts its steps. */
function openBench(): Promise<Workbench> {
  const clock = new ManualClock();
  prefixes += 1;
  const prefix = `sluice:{test${prefixes}}:`;
  const options = { connection: counted, bus: new LocalBus(), prefix, clock, log: silentLog };
  return Workbench.open(async () => ({
    queue: new RedisReadyQueue(options),
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    driftMs: 0,
  }));
}

function named(letter: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${letter}${index}`);
}

function limitOf(unit: string, burst: number): RateLimit {
  return { unit, rate: 1, perSeconds: 3_600, burst };
}

const units = named('u', maxLimits);
/** One of each unit, as a cost or as what was used. */
const oneOfAll: Cost = Object.fromEntries(units.map((unit) => [unit, 1]));
const someOfAll: Cost = Object.fromEntries(units.map((unit) => [unit, 5]));

function ownLimits(burst = 1_000): RateLimit[] {
  return units.map((unit) => limitOf(unit, burst));
}

async function configureAll(
  bench: Workbench,
  queues: readonly string[],
  limitsOf: (queue: string) => ReturnType<typeof ownLimits> | { readonly use: string }[],
  more: { readonly maxConcurrency?: number } = {},
): Promise<void> {
  const told = queues.map((queue) => bench.settings({ ...more, limits: limitsOf(queue) }, queue));
  expect(await bench.queue.configure({ limits: [], queues: told })).not.toBeNull();
}

async function shareAll(bench: Workbench, names: readonly string[], burst = 1_000): Promise<void> {
  const { version } = bench.settings({});
  const limits = names.map((name, index) => ({
    ...{ name, version, limit: limitOf(units[index % maxLimits] ?? '', burst) },
  }));
  expect(await bench.queue.configure({ limits, queues: [] })).not.toBeNull();
}

/** Takes until so many are taken; while there are fewer, each answer says to ask again at once. */
async function takeAll(
  bench: Workbench,
  count: number,
  request: Partial<TakeRequest> = {},
): Promise<Taken[]> {
  const taken: Taken[] = [];
  for (let nth = 0; nth < 60 && taken.length < count; nth += 1) {
    const answer = await bench.answer({ ...request, count: count - taken.length });
    if (answer.kind === 'taken') taken.push(...answer.entries);
    if (taken.length < count) expect(answer).toMatchObject({ waitMs: 0 });
  }
  expect(taken).toHaveLength(count);
  return taken;
}

function endsOf(taken: readonly Taken[], usage: Cost): Finished[] {
  return taken.map(({ taskId, grant, lane }) => ({
    ...{ taskId, grant, queue: lane.queue, reserved: oneOfAll, usage },
  }));
}

function tasksOf(bench: Workbench, queues: readonly string[], each = 1): Offer[] {
  return queues.flatMap((queue) =>
    Array.from({ length: each }, () => bench.task({ queue, cost: oneOfAll })),
  );
}

/** 120 queues with 20 limits each of their own. */
async function manyOwn(burst = 1_000): Promise<{ bench: Workbench; queues: string[] }> {
  const bench = await openBench();
  const queues = named('q', 120);
  await configureAll(bench, queues, () => ownLimits(burst));
  return { bench, queues };
}

/** 120 queues that share 20 limits each, no two of them the same one: as many sources as a take looks at. */
async function manyShared(burst = 1_000): Promise<{ bench: Workbench; queues: string[] }> {
  const bench = await openBench();
  const queues = named('q', 120);
  const namesOf = (queue: string) => units.map((unit) => `${queue}-${unit}`);
  await shareAll(bench, queues.flatMap(namesOf), burst);
  await configureAll(bench, queues, (queue) => namesOf(queue).map((use) => ({ use })));
  return { bench, queues };
}

interface Case {
  readonly what: string;
  /** Answers with what is counted. */
  readonly prepare: () => Promise<() => Promise<unknown>>;
}

const settings: readonly Case[] = [
  {
    what: 'configure: 300 queues with 20 new limits each',
    prepare: async () => {
      const bench = await openBench();
      return () => configureAll(bench, named('q', 300), () => ownLimits());
    },
  },
  {
    what: 'configure: 120 queues whose 20 limits all become others, with tasks',
    prepare: async () => {
      const { bench, queues } = await manyOwn();
      await bench.offer(...tasksOf(bench, queues));
      const others = named('v', maxLimits).map((unit) => limitOf(unit, 5));
      return () => configureAll(bench, queues, () => others);
    },
  },
  {
    what: 'configure: 100 queues with tasks that begin to share 20 limits each',
    prepare: async () => {
      const bench = await openBench();
      const queues = named('q', 100);
      await shareAll(bench, named('s', maxLimits));
      await bench.offer(...tasksOf(bench, queues));
      return () => configureAll(bench, queues, () => named('s', maxLimits).map((use) => ({ use })));
    },
  },
  {
    what: 'configure: 200 shared limits that are used by 90 sources each',
    prepare: async () => {
      const bench = await openBench();
      const names = named('s', 200);
      await shareAll(bench, names);
      const queues = named('q', 10);
      await configureAll(bench, queues, (queue) => {
        const from = Number(queue.slice(1)) * maxLimits;
        return names.slice(from, from + maxLimits).map((use) => ({ use }));
      });
      await bench.offer(
        ...queues.flatMap((queue) =>
          named('t', 90).map((taskType) => bench.task({ queue, taskType })),
        ),
      );
      return () => shareAll(bench, names, 2_000);
    },
  },
];

const entering: readonly Case[] = [
  {
    what: 'offer: 1,000 new task types of a queue that shares 20 limits',
    prepare: async () => {
      const bench = await openBench();
      await shareAll(bench, named('s', maxLimits));
      await configureAll(bench, ['q'], () => named('s', maxLimits).map((use) => ({ use })));
      const offers = named('t', 1_000).map((taskType) => bench.task({ taskType }));
      return () => bench.offer(...offers);
    },
  },
  {
    what: 'offer: the same, while workers for every type are there',
    prepare: async () => {
      const bench = await openBench();
      await bench.take();
      await shareAll(bench, named('s', maxLimits));
      await configureAll(bench, ['q'], () => named('s', maxLimits).map((use) => ({ use })));
      const offers = named('t', 1_000).map((taskType) => bench.task({ taskType }));
      return () => bench.offer(...offers);
    },
  },
  {
    what: 'offer: to 120 queues with 20 limits each',
    prepare: async () => {
      const { bench, queues } = await manyOwn();
      const offers = tasksOf(bench, queues, 3);
      return () => bench.offer(...offers);
    },
  },
  {
    what: 'offer: 1,000 tasks that are older than all of a full window',
    prepare: async () => {
      const bench = await openBench();
      await bench.configure({ maxReady: 1_000 });
      await bench.offer(...Array.from({ length: 1_000 }, () => bench.task()));
      const older = Array.from({ length: 1_000 }, () => bench.task({ ageMs: 60_000 }));
      return () => bench.offer(...older);
    },
  },
  {
    what: 'remove: 240 tasks that their queues are short of tokens for, 20 limits each',
    prepare: async () => {
      const { bench, queues } = await manyOwn(5);
      const offers = tasksOf(bench, queues, 2);
      await bench.offer(...offers.map((offer) => ({ ...offer, cost: someOfAll })));
      await takeAll(bench, queues.length, { taskTypes: ['t'] });
      await bench.queue.take({ taskTypes: ['t'], capabilities: [], queues: null, count: 1 });
      return () => bench.queue.remove(offers.map(({ taskId }) => taskId));
    },
  },
];

const ending: readonly Case[] = [
  {
    what: 'finish: 120 tasks that used 5 of each of 20 limits of their own queues',
    prepare: async () => {
      const { bench, queues } = await manyOwn();
      await bench.offer(...tasksOf(bench, queues, 2));
      const taken = await takeAll(bench, queues.length, { taskTypes: ['t'] });
      return () => bench.queue.finish(endsOf(taken, someOfAll));
    },
  },
  {
    what: 'finish: 120 tasks that used less of 20 shared limits each',
    prepare: async () => {
      const { bench, queues } = await manyShared();
      await bench.offer(...tasksOf(bench, queues, 2));
      const taken = await takeAll(bench, queues.length, { taskTypes: ['t'] });
      const usage = Object.fromEntries(units.map((unit) => [unit, 0]));
      return () => bench.queue.finish(endsOf(taken, usage));
    },
  },
  {
    what: 'finish: 120 tasks that are not out any more, with usage',
    prepare: async () => {
      const { bench, queues } = await manyOwn();
      const ended = tasksOf(bench, queues).map(({ taskId, lane: { queue } }) => ({
        ...{ taskId, grant: '1.1', queue, reserved: oneOfAll, usage: someOfAll },
      }));
      return () => bench.queue.finish(ended);
    },
  },
  {
    what: 'refund: 120 tasks of queues with 20 limits each',
    prepare: async () => {
      const { bench, queues } = await manyOwn();
      await bench.offer(...tasksOf(bench, queues, 2));
      const taken = await takeAll(bench, queues.length, { taskTypes: ['t'] });
      return () => bench.queue.refund(taken);
    },
  },
  {
    what: 'confirm and finish: 1,000 tasks of 1,000 queues, while 10,000 idle ones are known',
    prepare: async () => {
      const bench = await openBench();
      const taskTypes = ['t'];
      let taken: Taken[] = [];
      for (let from = 0; from < 11_000; from += 1_000) {
        const queues = named('q', from + 1_000).slice(from);
        await bench.offer(...queues.map((queue) => bench.task({ queue })));
        taken = await takeAll(bench, 1_000, { taskTypes });
        if (from < 10_000) await bench.queue.finish(endsOf(taken, {}));
      }
      return async () => {
        await bench.queue.confirm(taken);
        await bench.queue.finish(endsOf(taken, {}));
      };
    },
  },
];

const taking: readonly Case[] = [
  ...[
    { who: 'one type', request: { taskTypes: ['t'] } },
    { who: 'every type', request: {} },
    { who: 'queues by name', request: { queues: named('q', 120) } },
  ].flatMap(({ who, request }) => [
    {
      what: `take for ${who}: 119 queues wait for 20 shared limits each, the last one is open`,
      prepare: async () => {
        const { bench, queues } = await manyShared(5);
        await bench.take(request);
        // Each uses up the tokens that it shares.
        await bench.offer(
          ...tasksOf(bench, queues).map((offer) => ({ ...offer, cost: someOfAll })),
        );
        await takeAll(bench, 120, request);
        await bench.offer(...tasksOf(bench, queues));
        await bench.share('open', limitOf('u0', 5));
        await configureAll(bench, ['q119'], () => [{ use: 'open' }]);
        return async () => {
          const [entry] = await takeAll(bench, 1, request);
          expect(entry?.lane.queue).toBe('q119');
          const answer = await bench.answer(request);
          expect(answer).toMatchObject({ kind: 'wait', waitMs: expect.any(Number) as number });
          expect(answer.kind === 'wait' && answer.waitMs).toBeGreaterThan(0);
        };
      },
    },
    {
      what: `take for ${who}: 119 queues have used up 20 limits of their own, the last one is open`,
      prepare: async () => {
        const bench = await openBench();
        const queues = named('q', 120);
        await configureAll(bench, queues, () => ownLimits(5));
        await bench.take(request);
        await bench.offer(
          ...tasksOf(bench, queues).map((offer) => ({ ...offer, cost: someOfAll })),
        );
        await takeAll(bench, 120, request);
        await bench.offer(...tasksOf(bench, queues));
        await configureAll(bench, ['q119'], () => []);
        return async () => {
          const [entry] = await takeAll(bench, 1, request);
          expect(entry?.lane.queue).toBe('q119');
          let answer = await bench.answer(request);
          for (let nth = 0; nth < 9 && answer.kind === 'wait' && answer.waitMs === 0; nth += 1) {
            answer = await bench.answer(request);
          }
          expect(answer.kind === 'wait' && answer.waitMs).toBeGreaterThan(0);
          // All of them fall due at once.
          await bench.advance(3_600_000);
          await takeAll(bench, 119, request);
        };
      },
    },
    {
      what: `take for ${who}: 300 of 120 queues with 20 limits and entries of every priority`,
      prepare: async () => {
        const bench = await openBench();
        const queues = named('q', 120);
        await configureAll(bench, queues, () => ownLimits());
        await bench.take(request);
        const priorities = ['high', 'medium', 'low'] as const;
        await bench.offer(
          ...queues.flatMap((queue) =>
            priorities.flatMap((priority) =>
              Array.from({ length: 5 }, () => bench.task({ queue, priority, cost: oneOfAll })),
            ),
          ),
        );
        return () => takeAll(bench, 300, request);
      },
    },
  ]),
  {
    what: 'take: 100 of 600 lanes with entries of every priority, for workers that name 120',
    prepare: async () => {
      const bench = await openBench();
      const taskTypes = named('t', 120);
      const priorities = ['high', 'medium', 'low'] as const;
      for (const queue of named('q', 5)) {
        await bench.offer(
          ...taskTypes.flatMap((taskType) =>
            priorities.map((priority) => bench.task({ queue, taskType, priority })),
          ),
        );
      }
      return () => takeAll(bench, 100, { taskTypes });
    },
  },
];

/** 120 capability sets, of which a worker for every type has all. */
const capabilitySets = Array.from({ length: 120 }, (_, index) =>
  named('c', 7).filter((__, bit) => (((index + 1) >> bit) & 1) === 1),
);

const takingByWildcards: readonly Case[] = [
  {
    what: 'take for every type: 16 types of every priority in each of 120 capability sets',
    prepare: async () => {
      const bench = await openBench();
      const request = { capabilities: named('c', 7) };
      await bench.take(request);
      const priorities = ['high', 'medium', 'low'] as const;
      for (const taskType of named('t', 16)) {
        await bench.offer(
          ...capabilitySets.flatMap((capabilities) =>
            priorities.map((priority) => bench.task({ taskType, capabilities, priority })),
          ),
        );
      }
      return async () => {
        await takeAll(bench, 50, request);
        // All become high at once.
        await bench.advance(3_600_000);
        await takeAll(bench, 50, request);
      };
    },
  },
  {
    what: 'take: 200 lanes fall due at once, and a take of 50 finds them',
    prepare: async () => {
      const bench = await openBench();
      const queues = named('q', 200);
      const paused = { paused: true, pausedForMs: 1_000 };
      const told = queues.map((queue) => bench.settings(paused, queue));
      await bench.queue.configure({ limits: [], queues: told });
      await bench.offer(...queues.map((queue) => bench.task({ queue })));
      await bench.expectWait(1_000, { taskTypes: ['t'] });
      await bench.advance(1_000);
      return () => takeAll(bench, 50, { taskTypes: ['t'] });
    },
  },
];

const seeing: readonly Case[] = [
  {
    what: 'positions and live state: 250 lanes of 70 tasks, some old and some new',
    prepare: async () => {
      const bench = await openBench();
      const offers = named('t', 250).flatMap((taskType) =>
        Array.from({ length: 70 }, (_, index) =>
          bench.task({ taskType, priority: 'low', ageMs: index < 30 ? 700_000 : 0 }),
        ),
      );
      await bench.offer(...offers);
      const asked = offers.filter((_, index) => index % 70 === 45).slice(0, 200);
      return async () => {
        await bench.queue.live('q');
        const positions = asked.map(({ taskId }) => bench.queue.position(taskId, 10_000));
        expect(await Promise.all(positions)).not.toContain(null);
      };
    },
  },
  {
    what: 'survey: 120 queues with 20 limits each',
    prepare: async () => {
      const { bench, queues } = await manyOwn();
      await bench.offer(...tasksOf(bench, queues, 2));
      return async () => {
        const surveyed = await bench.queue.survey(() => undefined);
        expect(new Set(surveyed.map(({ queue }) => queue))).toEqual(new Set(queues));
      };
    },
  },
  {
    what: 'survey: 200 lanes of two queues with 66 tasks of every priority, some old and some new',
    prepare: async () => {
      const bench = await openBench();
      const priorities = ['high', 'medium', 'low'] as const;
      const lanes = named('q', 2).flatMap((queue) =>
        named('t', 100).flatMap((taskType) =>
          priorities.map((priority) => ({ queue, taskType, priority })),
        ),
      );
      const agesMs = [700_000, ...Array.from({ length: 65 }, () => 0)];
      for (const lane of lanes) {
        await bench.offer(...agesMs.map((ageMs) => bench.task({ ...lane, ageMs })));
      }
      return async () => {
        const surveyed = await bench.queue.survey(() => undefined);
        const depth = { high: 6_600, medium: 6_600, low: 6_600 };
        expect(surveyed).toMatchObject([{ depth }, { depth }]);
      };
    },
  },
  {
    what: 'levels: of 2,400 limits',
    prepare: async () => {
      const { bench } = await manyOwn();
      return async () => expect(await bench.queue.levels()).toHaveLength(2_400);
    },
  },
  {
    what: 'look: at 600 long windows of as many queues with settings, all of them behind',
    prepare: async () => {
      const bench = await openBench();
      const queues = named('q', 600);
      const told = queues.map((queue) => bench.settings({ maxReady: 66 }, queue));
      await bench.queue.configure({ limits: [], queues: told });
      const offers = queues.flatMap((queue) =>
        Array.from({ length: 67 }, () => bench.task({ queue })),
      );
      await bench.queue.offer(offers);
      const windows = queues.map((queue) => ({
        ...{ lane: { queue, taskType: 't', capabilities: [] }, priority: 'medium' as const },
      }));
      return async () => {
        expect(await bench.queue.look(windows)).toHaveLength(600);
        await bench.queue.beginFeed(windows);
        expect(await bench.queue.listBehind()).toHaveLength(600);
        await bench.queue.missing(offers.map(({ taskId }) => taskId));
      };
    },
  },
  {
    what: 'list: 5,000 tasks that are out',
    prepare: async () => {
      const bench = await openBench();
      await bench.offer(...tasksOf(bench, ['a', 'b'], 2_500));
      await takeAll(bench, 5_000);
      return () => bench.queue.listOut(null, 5_000);
    },
  },
];

const restoring: readonly Case[] = [
  {
    what: 'audit: 300 queues with 20 limits each, of them 120 that share 20 each',
    prepare: async () => {
      const { bench, queues } = await manyShared();
      await configureAll(bench, named('o', 180), () => ownLimits());
      await bench.take();
      const taskTypes = named('t', 4);
      await bench.offer(
        ...queues.flatMap((queue) => taskTypes.map((taskType) => bench.task({ queue, taskType }))),
      );
      return async () => {
        for (let nth = 0; nth < 20; nth += 1) {
          expect(await bench.queue.beginRestore(1)).toBe('open');
        }
      };
    },
  },
  {
    what: 'restore: 120 sources that share 20 limits each, and 1,000 running of as many queues',
    prepare: async () => {
      const { bench, queues } = await manyShared();
      await bench.take();
      await bench.offer(
        ...queues.flatMap((queue) =>
          named('t', 2).map((taskType) => bench.task({ queue, taskType })),
        ),
      );
      const told = named('r', 1_000).map((queue) =>
        bench.settings({ limits: ownLimits().slice(0, 2) }, queue),
      );
      const running = told.map(({ name }) => ({
        taskId: bench.task().taskId,
        grant: '1.1',
        queue: name,
      }));
      return () => bench.restore({ queues: told, running });
    },
  },
];

/** Scripts with more steps than one may have. */
function tooLong(found: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(found).filter(([, steps]) => steps > mostSteps));
}

describe.each([
  { kind: 'settings', cases: settings },
  { kind: 'what comes in and goes', cases: entering },
  { kind: 'ends', cases: ending },
  { kind: 'takes', cases: [...taking, ...takingByWildcards] },
  { kind: 'what is seen', cases: seeing },
  { kind: 'audits and restores', cases: restoring },
])('R-HA3: no script is long, whatever people submit: $kind', ({ cases }) => {
  it.each(cases)(
    '$what',
    async ({ prepare }) => {
      longest.forget();
      const act = await prepare();
      const preparing = longest.all();
      longest.forget();
      await act();
      const acting = longest.all();
      if (process.env.SHOW_STEPS !== undefined) {
        process.stderr.write(`${JSON.stringify({ preparing, acting })}\n`);
      }
      expect(tooLong(acting)).toEqual({});
      expect(tooLong(preparing)).toEqual({});
    },
    60_000,
  );
});

describe('R-HA3: an ordinary call is one script', () => {
  async function countScripts(call: () => Promise<unknown>): Promise<number> {
    const run = vi.spyOn(ScriptRunner.prototype, 'run');
    try {
      await call();
      return run.mock.calls.length;
    } finally {
      run.mockRestore();
    }
  }

  it.each([
    { who: 'one type', request: { taskTypes: ['t'] }, queues: 10, limits: 3 },
    { who: 'every type', request: {}, queues: 10, limits: 3 },
    { who: 'queues by name', request: { queues: named('q', 10) }, queues: 10, limits: 3 },
    { who: 'one type', request: { taskTypes: ['t'] }, queues: 500, limits: 0 },
    { who: 'every type', request: {}, queues: 500, limits: 0 },
    { who: 'one type', request: { taskTypes: ['t'] }, queues: 40, limits: 2 },
  ])('500 tasks of $queues queues with $limits limits, for $who', async (given) => {
    const bench = await openBench();
    const queues = named('q', given.queues);
    const limits = ownLimits().slice(0, given.limits);
    if (given.limits > 0) await configureAll(bench, queues, () => limits);
    const offersOf = () => tasksOf(bench, queues, 500 / queues.length);
    const filled = offersOf();
    await bench.offer(...filled);
    // Servers learn of new sources first.
    await bench.take(given.request);
    const offers = offersOf();
    expect(await countScripts(() => bench.offer(...offers))).toBe(1);
    const taken: Taken[] = [];
    const take = async () => taken.push(...(await takeAll(bench, 500, given.request)));
    expect(await countScripts(take)).toBe(1);
    expect(await countScripts(() => bench.queue.confirm(taken))).toBe(1);
    expect(await countScripts(() => bench.queue.finish(endsOf(taken, oneOfAll)))).toBe(1);
    const left = offers.slice(-100).map(({ taskId }) => taskId);
    expect(await countScripts(() => bench.queue.remove(left))).toBe(1);
  });
});
