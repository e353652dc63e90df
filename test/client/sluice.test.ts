import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  connect,
  defineTask,
  ResultTimeoutError,
  Sluice,
  type OpenOptions,
  SluiceError,
  TaskFailedError,
} from '../../src/index.js';
import { silentLog } from '../../src/runtime/log.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

const double = defineTask({
  type: 'double',
  queue: 'numbers',
  priority: 'low',
  timeoutSeconds: 5,
  maxRetries: 0,
  capabilities: ['calculator'],
  input: z.object({ n: z.number(), at: z.iso.datetime().optional() }),
  run: ({ n }) => n * 2,
});

describe('Sluice.open', () => {
  let sluice: Sluice;
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
    sluice = await Sluice.open({ databaseUrl: database.url });
  });
  afterAll(async () => {
    await sluice.close();
    await database.drop();
  });

  it('a submit carries the defaults of its definition, and its own options beat them', async () => {
    const plain = await sluice.submit(double, { n: 1 });
    await expect(plain.status()).resolves.toMatchObject({
      taskType: 'double',
      queue: 'numbers',
      priority: 'low',
      timeoutSeconds: 5,
      maxRetries: 0,
      requiredCapabilities: ['calculator'],
      parameters: { n: 1 },
    });
    const options = { priority: 'high', queue: 'other', capabilities: [], tags: ['a'] } as const;
    const special = await sluice.submit(double, { n: 1 }, options);
    await expect(special.status()).resolves.toMatchObject({
      queue: 'other',
      priority: 'high',
      requiredCapabilities: [],
      tags: ['a'],
    });
    await Promise.all([plain.cancel(), special.cancel()]);
  });

  it('input that does not fit is refused here, with its path, before anything is sent', async () => {
    const refusal = await sluice
      .submit(double, { n: 'one' } as unknown as { n: number })
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(SluiceError);
    expect(refusal).toMatchObject({
      code: 'invalid_request',
      errors: [{ path: '/parameters/n' }],
    });
    const loose = defineTask({ type: 'loose', run: () => null });
    await expect(sluice.submit(loose, { n: 1n } as never)).rejects.toMatchObject({
      code: 'invalid_request',
      errors: [{ path: '/parameters', message: 'A BigInt at /n is not JSON' }],
    });
  });

  it('of many, one that is refused does not sink the rest, and answers are in order', async () => {
    const inputs = [{ n: 1 }, { n: 'two' as unknown as number }, { n: 3 }];
    const submitted = await sluice.submitMany(
      double,
      inputs.map((input) => ({ input, options: { tags: ['many'] } })),
    );
    expect(submitted.map(({ kind }) => kind)).toEqual(['accepted', 'refused', 'accepted']);
    const [first, , third] = submitted;
    if (first?.kind !== 'accepted' || third?.kind !== 'accepted') throw new Error('not accepted');
    await expect(first.handle.status()).resolves.toMatchObject({ parameters: { n: 1 } });
    await expect(third.handle.status()).resolves.toMatchObject({ parameters: { n: 3 } });
    await sluice.api.cancelTasks({ tag: 'many' });
  });

  it('a result can be waited for with a limit, or until one loses interest', async () => {
    const handle = await sluice.submit(double, { n: 1 });
    await expect(handle.result({ timeoutMs: 20 })).rejects.toThrow(ResultTimeoutError);
    const leaving = new AbortController();
    const waiting = handle.result({ signal: leaving.signal });
    leaving.abort(new Error('no longer interested'));
    await expect(waiting).rejects.toThrow('no longer interested');
    await handle.cancel();
    await expect(handle.result()).rejects.toThrow(TaskFailedError);
    await expect(handle.result()).rejects.toMatchObject({ state: 'cancelled', error: null });
  });

  it('a handle tells its receipt with its position now, and why it is not running', async () => {
    const definition = defineTask({ type: 'nobody-runs', queue: 'line', run: () => null });
    const first = await sluice.submit(definition, {});
    const second = await sluice.submit(definition, {}, { priority: 'low' });
    await expect(first.receipt()).resolves.toMatchObject({
      taskId: first.id,
      status: 'queued',
      queue: 'line',
      queuePosition: 0,
      created: true,
    });
    await expect(second.receipt()).resolves.toMatchObject({ priority: 'low', queuePosition: 1 });
    await expect(sluice.task(second.id).receipt()).resolves.toMatchObject({
      queue: 'line',
      queuePosition: 1,
      created: false,
    });
    const { reasons } = await second.explain();
    expect(reasons.map(({ kind }) => kind)).toEqual(['no_worker', 'behind']);
    await sluice.api.cancelTasks({ queue: 'line' });
    await expect(first.receipt()).resolves.toMatchObject({
      status: 'cancelled',
      queuePosition: null,
      estimatedWaitSeconds: null,
    });
  });

  it('a handle for a task submitted elsewhere, and a queue by its name', async () => {
    const { id } = await sluice.submit(double, { n: 1 });
    await expect(sluice.task(id).status()).resolves.toMatchObject({ taskId: id });
    const queue = sluice.queue('numbers');
    await expect(queue.pause()).resolves.toMatchObject({ settings: { paused: true } });
    await expect(queue.resume()).resolves.toMatchObject({ settings: { paused: false } });
    await expect(queue.set({ maxConcurrency: 3 })).resolves.toMatchObject({
      settings: { maxConcurrency: 3 },
    });
    const limits = [{ unit: 'requests', rate: 500, perSeconds: 60, burst: null }];
    await expect(queue.change({ limits: { rpm: 500 } })).resolves.toMatchObject({
      settings: { maxConcurrency: 3, limits },
    });
    await expect(
      queue.set({ limits: [{ unit: 'tokens', rate: 5, perSeconds: 1 }] }),
    ).resolves.toMatchObject({
      settings: { maxConcurrency: null, limits: [{ unit: 'tokens', burst: null }] },
    });
    await expect(queue.get()).resolves.toMatchObject({ name: 'numbers' });
    await sluice.task(id).cancel();
  });

  it('R-CH12: any number of processes submit and read beside the one that serves', async () => {
    const submitter = await Sluice.open({ databaseUrl: database.url, role: 'submit' });
    const echo = defineTask({ type: 'echo', run: ({ text }) => text ?? null });
    const worker = sluice.worker([echo], { log: silentLog });
    await worker.start();
    const handle = await submitter.submit(echo, { text: 'from afar' });
    await expect(handle.result()).resolves.toBe('from afar');
    await submitter.close();
    await worker.stop();
  });

  it('closing lets its workers finish, and may be said twice', async () => {
    const other = await createTestDatabase();
    let finished = false;
    {
      await using scoped = await Sluice.open({ databaseUrl: other.url });
      let begun: () => void = () => undefined;
      const beginning = new Promise<void>((resolve) => (begun = resolve));
      const slow = defineTask({
        type: 'slow',
        run: async () => {
          begun();
          await new Promise((resolve) => setImmediate(resolve));
          finished = true;
        },
      });
      await scoped.worker([slow], { log: silentLog }).start();
      await scoped.submit(slow, {});
      await beginning;
      await scoped.close();
      expect(finished).toBe(true);
    }
    await other.drop();
  });

  it('says that it is closed, whatever is asked of it then; a handler may submit until then', async () => {
    const other = await createTestDatabase();
    const closed = await Sluice.open({ databaseUrl: other.url });
    const begun = new AbortController();
    const followed: unknown[] = [];
    const first = defineTask({
      type: 'first',
      run: async () => {
        begun.abort();
        await stopping;
        followed.push(await closed.submit(double, { n: 1 }));
      },
    });
    const worker = closed.worker([first], { log: silentLog });
    await worker.start();
    const handle = await closed.submit(first, {});
    const beginning = new Promise((resolve) => begun.signal.addEventListener('abort', resolve));
    let stop: () => void = () => undefined;
    const stopping = new Promise<void>((resolve) => (stop = resolve));
    await beginning;
    const closing = closed.close();
    stop();
    await closing;
    expect(followed).toHaveLength(1);
    const refusal = { code: 'closed', message: expect.stringContaining('is closed') as string };
    await expect(closed.submit(double, { n: 1 })).rejects.toMatchObject(refusal);
    await expect(closed.submitMany(double, [{ input: { n: 1 } }])).rejects.toMatchObject(refusal);
    await expect(closed.queue('numbers').get()).rejects.toMatchObject(refusal);
    await expect(closed.api.getStatistics()).rejects.toMatchObject(refusal);
    await expect(handle.result()).rejects.toMatchObject(refusal);
    expect(() => closed.worker([double])).toThrow('is closed');
    await other.drop();
  });

  it('a type that is defined twice is named, also when it is the same definition', () => {
    const twin = defineTask({ type: 'double', run: () => 1 });
    expect(() => sluice.worker([double, twin])).toThrow(/^Defined twice: double\./);
    expect(() => sluice.worker([double, double])).toThrow(/^Defined twice: double\./);
  });

  it('an option that it does not know is refused, and nothing is opened', async () => {
    const misspelt = { url: 'postgres://nowhere' } as OpenOptions;
    await expect(Sluice.open(misspelt)).rejects.toThrow(
      /url is not a known field\nIt takes dataDir, databaseUrl, .*connect\(url\)/,
    );
  });

  it('a folder and a server exclude each other', async () => {
    await expect(
      Sluice.open({ dataDir: 'a', databaseUrl: 'postgres://localhost/b' }),
    ).rejects.toThrow('exclude each other');
  });
});

it.each([
  ['localhost:7999', 'The address "localhost:7999" has no scheme. Type "http://localhost:7999"'],
  ['127.0.0.1:7999/api', 'Type "http://127.0.0.1:7999/api"'],
  ['queue.example.com', 'Type "http://queue.example.com", or "https://queue.example.com"'],
  [
    'postgres://me:secret@db/x',
    'The address "postgres://db/x" is that of a database. Type Sluice.open',
  ],
  ['ws://localhost:7999', 'begins with ws://. Type http:// or https:// instead'],
  ['', 'must be a URL like http://127.0.0.1:7700, not ""'],
  ['http://', 'is not a URL'],
])('connect(%j) says what to type instead', (url, sentence) => {
  expect(() => connect(url)).toThrow(sentence);
});

it('connect gives the same interface, and refuses in the same words when nobody is there', async () => {
  const sluice = connect('http://127.0.0.1:1');
  await expect(sluice.submit(double, { n: 1 })).rejects.toMatchObject({ code: 'unavailable' });
  await sluice.close();
});
