import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, inject, it } from 'vitest';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import type { TaskTypeDefinition } from '../../src/protocol/task-types-api.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { freshPglite } from '../support/pglite.js';
import { until } from '../support/until.js';
import {
  describeOnEveryEngine,
  describeOnPostgres,
  refusal,
  TestWorker,
  type EngineUnderTest,
} from './support.js';

const dayMs = 24 * 3_600_000;

let types = 0;
/** A type that no other test of this file uses. */
const freshType = (): string => `type-${(types += 1)}`;

const define = (
  engine: Engine,
  definition: TaskTypeDefinition,
  version?: string,
): Promise<TestWorker> =>
  TestWorker.register(engine, {
    taskTypes: [definition.taskType],
    definitions: [definition],
    ...(version === undefined ? {} : { version }),
  });

const queueOf = async (engine: Engine, taskType: string): Promise<string> =>
  (await engine.submit({ taskType })).queue;

async function submitted(engine: Engine, draft: Parameters<Engine['submit']>[0]) {
  const { taskId } = await engine.submit(draft);
  const task = await engine.getTask(taskId);
  const { queue, priority, requiredCapabilities, timeoutSeconds, maxRetries, cost } = task;
  return { queue, priority, requiredCapabilities, timeoutSeconds, maxRetries, cost };
}

describeOnEveryEngine('task types', (under: () => EngineUnderTest) => {
  it('a submit by name gets what a worker defined; what it says itself comes first', async () => {
    const { engine } = under();
    const taskType = freshType();
    const definition = {
      ...{ taskType, queue: 'gpt-4o', priority: 'high' as const, capabilities: ['gpu', 'gpu'] },
      ...{ timeoutSeconds: 77, maxRetries: 9, cost: { tokens: 1200 } },
    };
    await define(engine, definition);
    const defaults = {
      ...{ queue: 'gpt-4o', priority: 'high', requiredCapabilities: ['gpu'] },
      ...{ timeoutSeconds: 77, maxRetries: 9, cost: { tokens: 1200 } },
    };
    expect(await submitted(engine, { taskType })).toEqual(defaults);
    const said = {
      ...{ queue: 'other', priority: 'low' as const, requiredCapabilities: [], timeoutSeconds: 5 },
      ...{ maxRetries: 0, cost: {} },
    };
    expect(await submitted(engine, { taskType, ...said })).toEqual(said);
    expect(await submitted(engine, { taskType, maxRetries: 0 })).toEqual({
      ...defaults,
      maxRetries: 0,
    });
    const [batched] = await engine.submitMany([{ taskType }]);
    expect(batched).toMatchObject({ receipt: { queue: 'gpt-4o', priority: 'high' } });
  });

  it('what neither the submit nor the type says is as for any task', async () => {
    const { engine } = under();
    const taskType = freshType();
    await define(engine, { taskType, priority: 'low' });
    const usual = { queue: 'default', requiredCapabilities: [], cost: null };
    expect(await submitted(engine, { taskType })).toEqual({
      ...{ ...usual, priority: 'low', timeoutSeconds: 900, maxRetries: 2 },
    });
    expect(await submitted(engine, { taskType: freshType() })).toEqual({
      ...{ ...usual, priority: 'medium', timeoutSeconds: 600, maxRetries: 3 },
    });
  });

  it('a repeat under an idempotency key is the same task, also when its type was defined anew', async () => {
    const { engine } = under();
    const draft = { taskType: freshType(), idempotencyKey: freshType() };
    await define(engine, { taskType: draft.taskType, queue: 'before' });
    const first = await engine.submit(draft);
    await define(engine, { taskType: draft.taskType, queue: 'after' });
    const again = await engine.submit(draft);
    expect(again).toMatchObject({ taskId: first.taskId, queue: 'before', created: false });
    expect(await queueOf(engine, draft.taskType)).toBe('after');
  });

  it('definitions that no submit could use are refused with their path', async () => {
    const { engine } = under();
    const taskType = freshType();
    const error = await engine
      .register({
        taskTypes: [taskType],
        definitions: [
          { taskType, cost: { requests: 2 } },
          { taskType },
          { taskType: 'not-handled', capabilities: Array<string>(40).fill('x'.repeat(64)) },
        ],
      })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'invalid_request',
      errors: [
        { path: '/definitions/0/cost/requests' },
        { path: '/definitions/1/task_type', message: 'is defined twice' },
        { path: '/definitions/2/task_type', message: 'is none of task_types' },
        { path: '/definitions/2', message: expect.stringContaining('more than 2 KiB') as unknown },
      ],
    });
  });

  it('lists them page by page without their schemas, and shows one with it', async () => {
    const { engine } = under();
    const taskType = freshType();
    const inputSchema = { type: 'object', description: 'NUL \u0000 and "quotes"' };
    const retry = { codes: { NO_MODEL: false, BUSY: 3 }, delaySeconds: [1, 5] } as const;
    await define(engine, { taskType, queue: 'shown', retry, inputSchema }, '1.2.3');
    const listed = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page = await engine.listTaskTypes({ limit: 2, ...(cursor ? { cursor } : {}) });
      listed.push(...page.items);
      cursor = page.nextCursor;
    }
    const one = listed.find((type) => type.taskType === taskType);
    expect(one).toMatchObject({ queue: 'shown', version: '1.2.3', retry, hasInputSchema: true });
    expect(one).not.toHaveProperty('inputSchema');
    expect(new Set(listed.map((type) => type.taskType)).size).toBe(listed.length);
    expect(await engine.getTaskType(taskType)).toEqual({ ...one, inputSchema });
    expect(await refusal(engine.getTaskType('nobody-defined-this'))).toBe('task_type_not_found');
  });

  it('what is too large to be kept is left out, and the worker is told', async () => {
    const { engine } = under();
    const taskType = freshType();
    const inputSchema = { description: 'x'.repeat(17 * 1024) };
    const definitions = [{ taskType, queue: 'large', inputSchema }];
    const { notes } = await engine.register({ taskTypes: [taskType], definitions });
    expect(notes).toEqual([expect.stringMatching(/JSON Schema .* larger than 16 KiB/)]);
    const view = { queue: 'large', hasInputSchema: false, inputSchema: null };
    expect(await engine.getTaskType(taskType)).toMatchObject(view);
  });
});

describeOnPostgres('two workers that define a type differently', (server) => {
  const lines: { msg: string; task_type?: string; level: number; differs_in?: string[] }[] = [];
  const log = pino(
    { level: 'info' },
    { write: (line: string) => lines.push(JSON.parse(line) as (typeof lines)[number]) },
  );
  const warningsOf = (taskType: string) =>
    lines.filter(({ task_type, level }) => task_type === taskType && level === 40);

  it('without versions: the one that registers last counts, and the log says so once', async () => {
    const engine = await server().open({ log });
    const taskType = freshType();
    const [here, there] = [
      { taskType, queue: 'here' },
      { taskType, queue: 'there', maxRetries: 1 },
    ];
    await define(engine, here);
    await define(engine, here);
    expect(warningsOf(taskType)).toEqual([]);
    for (const definition of [there, here, there]) await define(engine, definition);
    expect(await queueOf(engine, taskType)).toBe('there');
    expect(warningsOf(taskType)).toMatchObject([
      {
        differs_in: ['queue', 'max_retries'],
        msg: expect.stringContaining('two workers define') as unknown,
      },
    ]);
  });

  it('one after the other: a worker that left does not disagree', async () => {
    const engine = await server().open({ log });
    const taskType = freshType();
    const { workerId } = await define(engine, { taskType, queue: 'before' });
    await engine.deregister(workerId);
    await define(engine, { taskType, queue: 'edited' });
    expect(await queueOf(engine, taskType)).toBe('edited');
    expect(warningsOf(taskType)).toEqual([]);
  });

  it('with versions: the newer one counts, whoever registers last; the older worker is told', async () => {
    const engine = await server().open({ log });
    const taskType = freshType();
    const newer = await define(engine, { taskType, queue: 'new' }, '1.10.0');
    const definitions = [{ taskType, queue: 'old' }];
    const older = { taskTypes: [taskType], definitions, version: '1.9.0' };
    const { notes } = await engine.register(older);
    expect(notes).toEqual([expect.stringMatching(/version 1\.10\.0 .*\(queue\).*version 1\.9\.0/)]);
    await engine.register(older);
    expect(await queueOf(engine, taskType)).toBe('new');
    expect(warningsOf(taskType)).toHaveLength(1);
    // Rolled back: nobody runs the newer one any more.
    await engine.deregister(newer.workerId);
    expect((await engine.register(older)).notes).toBeUndefined();
    expect(await queueOf(engine, taskType)).toBe('old');
  });

  it('at once, at two servers: all servers end up with the same one', async () => {
    const redisUrl = inject('redisUrl');
    const engines = await Promise.all([server().open({ redisUrl }), server().open({ redisUrl })]);
    const names = Array.from({ length: 20 }, freshType);
    await Promise.all(
      engines.flatMap((engine, n) =>
        names.map((taskType) => define(engine, { taskType, queue: `of-${n}` })),
      ),
    );
    const kept = await server().sql<{ name: string; queue: string }>(
      'select name, queue from sluice.task_types where name = any($1)',
      [names],
    );
    expect(kept).toHaveLength(20);
    for (const { name, queue } of kept) {
      for (const engine of engines) {
        await until(`${name} to be known`, async () => (await queueOf(engine, name)) === queue);
      }
    }
  });
});

describeOnPostgres('task types of many processes', (server) => {
  it('defined at one server, it counts at another one, and after both have restarted', async () => {
    const open = () => server().open({ redisUrl: inject('redisUrl') });
    const [first, second] = await Promise.all([open(), open()]);
    const taskType = freshType();
    await define(first, { taskType, queue: 'shared' });
    expect(await queueOf(first, taskType)).toBe('shared');
    await until('the other server to know', async () => {
      return (await queueOf(second, taskType)) === 'shared';
    });
    await Promise.all([first.close(), second.close()]);
    expect(await queueOf(await open(), taskType)).toBe('shared');
  });

  it('without Redis, a process that only submits learns of it too', async () => {
    const serving = await server().open();
    const submitting = await server().open({ role: 'submit' });
    const taskType = freshType();
    await define(serving, { taskType, queue: 'learned' });
    await until('the other process to know', async () => {
      return (await queueOf(submitting, taskType)) === 'learned';
    });
  });

  it('a submit asks Postgres nothing about types: also while their table is locked', async () => {
    const engine = await server().open();
    const taskType = freshType();
    await define(engine, { taskType, queue: 'known' });
    const other = await server().connect();
    await other.query('begin; lock table sluice.task_types in access exclusive mode');
    expect(await queueOf(engine, taskType)).toBe('known');
    expect(await queueOf(engine, freshType())).toBe('default');
    await other.query('rollback');
  });

  it('a type that no worker had for 30 days is deleted; one that a worker has is not', async () => {
    const clock = new ManualClock(Date.now());
    const leaseMs = 365 * dayMs;
    const settings = { leaseMs, upkeepIntervalMs: 20, rereadIntervalMs: 20 };
    const open = () => server().open({ clock, settings });
    const before = await open();
    const [living, gone] = [freshType(), freshType()];
    await define(before, { taskType: living, queue: 'living' });
    const { workerId } = await define(before, { taskType: gone, queue: 'gone' });
    await before.deregister(workerId);
    await before.close();
    clock.advance(31 * dayMs);
    const engine = await open();
    await until(
      'the type to be deleted',
      async () => (await refusal(engine.getTaskType(gone))) !== null,
    );
    await until(
      'the type to be forgotten',
      async () => (await queueOf(engine, gone)) === 'default',
    );
    expect(await queueOf(engine, living)).toBe('living');
  });

  it('at most 10,000 types are kept: a further one is not, and its worker is told', async () => {
    const engine = await server().open();
    const known = freshType();
    await define(engine, { taskType: known, queue: 'known' });
    await server().sql(
      `insert into sluice.task_types (name, fingerprint)
       select 'made-up-' || n, '' from generate_series(1, 10000) n`,
    );
    const taskType = freshType();
    const definitions = [{ taskType, queue: 'further' }];
    const { notes } = await engine.register({ taskTypes: [taskType], definitions });
    expect(notes).toEqual([
      expect.stringMatching(/is not kept: there are 10000 task types already/),
    ]);
    expect(await queueOf(engine, taskType)).toBe('default');
    await define(engine, { taskType: known, queue: 'changed' });
    expect(await queueOf(engine, known)).toBe('changed');
  });
});

describe('task types in a data folder', () => {
  it('are there when it is opened again', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-types-'));
    try {
      const first = await openEngine({ database: { ...freshPglite(), dataDir } });
      await define(first, { taskType: 'kept', queue: 'folder' });
      await first.close();
      const second = await openEngine({ database: { kind: 'pglite', dataDir } });
      expect(await queueOf(second, 'kept')).toBe('folder');
      await second.close();
    } finally {
      await rm(dataDir, { recursive: true });
    }
  });
});
