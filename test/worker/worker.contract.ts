import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTask } from '../../src/client/define-task.js';
import { SluiceClient } from '../../src/client/sluice-client.js';
import { TaskFailedError } from '../../src/client/task-handle.js';
import { SluiceError } from '../../src/domain/errors.js';
import type { WorkerId } from '../../src/domain/ids.js';
import type { SluiceApi } from '../../src/protocol/api.js';
import { silentLog } from '../../src/runtime/log.js';
import {
  NonRetriableError,
  RateLimitedError,
  RetryAfterError,
  TaskAbortedError,
} from '../../src/worker/errors.js';
import type { HandlerContext, TaskHandler } from '../../src/worker/handler.js';
import { Worker, type WorkerOptions } from '../../src/worker/worker.js';
import { Gate } from '../support/gate.js';
import { until } from '../support/until.js';
import { withCall, withTerms, type Transport } from './transport.js';

/** What holds for a worker wherever its server is: in this process or at the end of a wire. */
export function describeWorkerContract(name: string, open: () => Promise<Transport>): void {
  let transport: Transport;
  let sluice: SluiceClient;

  beforeAll(async () => {
    transport = await open();
    sluice = new SluiceClient(transport.api, async () => undefined);
  });
  afterAll(() => transport.close());

  /** A worker for the length of a test; types are never shared, so tests don't meet. */
  async function working<Answer>(
    handlers: TaskHandler[],
    test: (worker: Worker) => Promise<Answer>,
    options: WorkerOptions & { api?: SluiceApi } = {},
  ): Promise<Answer> {
    const { api = transport.api, ...rest } = options;
    const worker = new Worker(api, handlers, { drainTimeoutMs: 100, log: silentLog, ...rest });
    await worker.start();
    try {
      return await test(worker);
    } finally {
      await worker.stop();
    }
  }

  describe(`a worker ${name}`, () => {
    it('R-WO11: runs a task and answers with what its handler returned', async () => {
      const add = defineTask({
        type: unique('add'),
        input: z.object({ a: z.number(), b: z.number().default(1) }),
        run: ({ a, b }, { task, attempt }) => ({ sum: a + b, queue: task.queue, attempt }),
      });
      await working([add], async () => {
        const handle = await sluice.submit(add, { a: 2 }, { queue: add.type });
        await expect(handle.result()).resolves.toEqual({ sum: 3, queue: add.type, attempt: 1 });
      });
    });

    it('R-WO1: never runs more at once than it has slots, and all of them', async () => {
      const size = 5;
      let running = 0;
      let most = 0;
      const full = new Gate();
      const go = new Gate();
      const count = defineTask({
        type: unique('count'),
        run: async () => {
          running += 1;
          most = Math.max(most, running);
          if (running === size) full.open();
          await go.passed;
          running -= 1;
        },
      });
      await working(
        [count],
        async (worker) => {
          const handles = await submitAll(count, 30);
          await full.passed;
          expect(worker.inFlight).toBe(size);
          go.open();
          await Promise.all(handles.map((handle) => handle.result()));
          expect(most).toBe(size);
        },
        { concurrency: size },
      );
    });

    it('R-CH9: a slow task holds up no neighbour, also one that came later', async () => {
      const go = new Gate();
      const slow = defineTask({ type: unique('slow'), run: () => go.passed });
      const quick = defineTask({ type: unique('quick'), run: () => 'done' });
      await working(
        [slow, quick],
        async () => {
          const first = await sluice.submit(slow, {});
          for (let i = 0; i < 3; i += 1) {
            await expect((await sluice.submit(quick, {})).result()).resolves.toBe('done');
          }
          go.open();
          await expect(first.result()).resolves.toBeNull();
        },
        { concurrency: 2 },
      );
    });

    it('R-RE4: an error that another attempt would not mend goes to the dead letters', async () => {
      const bad = defineTask({
        type: unique('bad'),
        run: () => {
          throw new NonRetriableError('the key is wrong', { code: 'BAD_KEY', details: { key: 1 } });
        },
      });
      await working([bad], async () => {
        const handle = await sluice.submit(bad, {});
        const failure = await handle.result().catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(TaskFailedError);
        expect(failure).toMatchObject({
          state: 'dead_letter',
          error: {
            code: 'BAD_KEY',
            message: 'the key is wrong',
            retriable: false,
            details: { key: 1 },
          },
        });
      });
    });

    it('R-RE2: a failed attempt is followed by another, when the error says', async () => {
      const flaky = defineTask({
        type: unique('flaky'),
        run: (_, { attempt }) => {
          if (attempt < 3) throw new RetryAfterError(0);
          return attempt;
        },
      });
      await working([flaky], async () => {
        const handle = await sluice.submit(flaky, {});
        await expect(handle.result()).resolves.toBe(3);
        await expect(handle.status()).resolves.toMatchObject({ retryCount: 2 });
      });
    });

    it('R-RE9: a service that says "slow down" costs no retry', async () => {
      const limited = defineTask({
        type: unique('limited'),
        maxRetries: 0,
        run: (_, { attempt }) => {
          if (attempt === 1) throw new RateLimitedError(0);
          return attempt;
        },
      });
      await working([limited], async () => {
        const handle = await sluice.submit(limited, {}, { queue: limited.type });
        await expect(handle.result()).resolves.toBe(2);
        await expect(handle.status()).resolves.toMatchObject({ retryCount: 0 });
      });
    });

    it("R-WO11: parameters that don't fit the handler's schema are INVALID_INPUT, with where", async () => {
      const type = unique('strict');
      const strict = defineTask({
        type,
        input: z.object({ items: z.array(z.object({ n: z.number() })) }),
        run: () => null,
      });
      await working([strict], async () => {
        const { taskId } = await transport.api.submit({
          taskType: type,
          parameters: { items: [{ n: 1 }, { n: 'two' }] },
        });
        await expect(sluice.task(taskId).ended()).resolves.toMatchObject({
          status: 'dead_letter',
          attempt: 1,
          error: { code: 'INVALID_INPUT', details: [{ path: '/items/1/n' }] },
        });
      });
    });

    it('results that are not JSON fail clearly; a handler that throws a string disturbs nobody', async () => {
      const bigint = defineTask({ type: unique('bigint'), run: () => ({ n: 1n }) });
      const text = defineTask({
        type: unique('text'),
        maxRetries: 0,
        run: () => {
          throw 'just text' as unknown as Error;
        },
      });
      const fine = defineTask({ type: unique('fine'), run: () => undefined });
      await working([bigint, text, fine], async () => {
        const handles = await Promise.all([
          sluice.submit(bigint, {}),
          sluice.submit(text, {}),
          sluice.submit(fine, {}),
        ]);
        const ended = await Promise.all(handles.map((handle) => handle.ended()));
        expect(ended).toMatchObject([
          { status: 'dead_letter', attempt: 1, error: { code: 'RESULT_NOT_JSON' } },
          { status: 'dead_letter', error: { code: 'ERROR', message: 'just text' } },
          { status: 'completed', result: null },
        ]);
      });
    });

    it('a result of more than a mebibyte fails for good; its neighbours are taken', async () => {
      const size = defineTask({
        type: unique('size'),
        input: z.object({ bytes: z.number() }),
        run: ({ bytes }) => 'x'.repeat(bytes),
      });
      await working([size], async () => {
        const sizes = [1, 2 * 1024 * 1024, 20 * 1024 * 1024, 2];
        const handles = await Promise.all(sizes.map((bytes) => sluice.submit(size, { bytes })));
        const ended = await Promise.all(handles.map((handle) => handle.ended()));
        expect(ended).toMatchObject([
          { status: 'completed', result: 'x' },
          { status: 'dead_letter', error: { code: 'RESULT_TOO_LARGE' } },
          { status: 'dead_letter', error: { code: 'RESULT_TOO_LARGE' } },
          { status: 'completed', result: 'xx' },
        ]);
      });
    });

    it('R-WO6: at the timeout the attempt ends, even if its handler never does', async () => {
      const told = new Gate<unknown>();
      const deaf = defineTask({
        type: unique('deaf'),
        timeoutSeconds: 1,
        maxRetries: 0,
        run: (_, { signal }) => {
          signal.addEventListener('abort', () => told.open(signal.reason));
          return new Promise<never>(() => undefined);
        },
      });
      const quick = defineTask({ type: unique('quick'), run: () => 'done' });
      await working(
        [deaf, quick],
        async () => {
          const handle = await sluice.submit(deaf, {});
          const after = await sluice.submit(quick, {});
          await expect(told.passed).resolves.toMatchObject({ why: 'timeout' });
          await expect(handle.ended()).resolves.toMatchObject({
            status: 'dead_letter',
            error: { code: 'TIMEOUT' },
          });
          await expect(after.result()).resolves.toBe('done');
        },
        { concurrency: 1 },
      );
    });

    it('R-WO7: a cancel reaches a running handler at once, also when every slot is taken', async () => {
      const started = new Gate();
      const endless = defineTask({
        type: unique('endless'),
        run: (_, { signal }) => {
          started.open();
          return rejectedOnAbort(signal);
        },
      });
      await working(
        [endless],
        async (worker) => {
          const handle = await sluice.submit(endless, {});
          await started.passed;
          await expect(handle.cancel()).resolves.toMatchObject({ wasExecuting: true });
          await until('the slot to be free', () => worker.inFlight === 0);
          await expect(handle.status()).resolves.toMatchObject({
            status: 'cancelled',
            error: null,
          });
        },
        // A heartbeat would bring the news too, but not before the test is over.
        {
          concurrency: 1,
          api: withTerms(transport.api, { heartbeatIntervalMs: 600_000, leaseMs: 1e9 }),
        },
      );
    });

    it('a cancelled member keeps its workflow waiting until its handler has let go', async () => {
      const order: string[] = [];
      const started = new Gate();
      const go = new Gate();
      const member = defineTask({
        type: unique('member'),
        input: z.object({ name: z.string() }),
        run: async ({ name: which }) => {
          order.push(`${which} begins`);
          if (which === 'first') {
            started.open();
            await go.passed;
          }
          order.push(`${which} ends`);
        },
      });
      await working([member], async () => {
        const workflowId = randomUUID();
        const first = await sluice.submit(member, { name: 'first' }, { workflowId });
        const second = await sluice.submit(member, { name: 'second' }, { workflowId });
        await started.passed;
        await first.cancel();
        await expect(second.status()).resolves.toMatchObject({ status: 'pending' });
        go.open();
        await second.result();
        expect(order).toEqual(['first begins', 'first ends', 'second begins', 'second ends']);
      });
    });

    it('R-WO11: progress is seen from outside', async () => {
      const go = new Gate();
      const steps = defineTask({
        type: unique('steps'),
        run: async (_, { progress }) => {
          for (let percent = 0; percent <= 40; percent += 1) progress(percent, 'reading');
          await go.passed;
        },
      });
      await working([steps], async () => {
        const handle = await sluice.submit(steps, {});
        await until('the last progress', async () => {
          const { progress } = await handle.status();
          return progress?.percent === 40 && progress.message === 'reading';
        });
        go.open();
        await handle.result();
      });
    });

    it('R-CH5: what a handler says that it used goes with its result; the last word counts', async () => {
      const call = defineTask({
        type: unique('call'),
        cost: { tokens: 2000 },
        run: (_, { usage }) => {
          usage({ tokens: 1 });
          usage({ tokens: 1834, images: 0 });
        },
      });
      const silent = defineTask({ type: unique('silent'), run: () => undefined });
      await working([call, silent], async () => {
        const handles = [await sluice.submit(call, {}), await sluice.submit(silent, {})];
        const ended = await Promise.all(handles.map((handle) => handle.ended()));
        expect(ended).toMatchObject([
          { status: 'completed', cost: { tokens: 2000 }, usage: { tokens: 1834, images: 0 } },
          { status: 'completed', cost: null, usage: null },
        ]);
      });
    });

    it.each([-1, 1.5, NaN, 1e13])(
      'R-CH5: a usage of %d fails the attempt, and says so',
      async (tokens) => {
        const call = defineTask({
          type: unique('call'),
          run: (_, { usage }) => {
            usage({ tokens });
          },
        });
        await working([call], async () => {
          const { status, error } = await (await sluice.submit(call, {})).ended();
          expect({ status, error }).toMatchObject({
            status: 'dead_letter',
            error: {
              code: 'INVALID_USAGE',
              message: expect.stringContaining('/usage/tokens must be a whole number') as string,
            },
          });
        });
      },
    );

    it('R-WO8: stopping takes nothing new, lets what runs finish, and reports it', async () => {
      const started = new Gate();
      const go = new Gate();
      const slow = defineTask({
        type: unique('slow'),
        run: async () => {
          started.open();
          await go.passed;
          return 'finished';
        },
      });
      const worker = new Worker(transport.api, [slow], { concurrency: 1, log: silentLog });
      await worker.start();
      const running = await sluice.submit(slow, {});
      await started.passed;
      const waiting = await sluice.submit(slow, {});
      const stopping = worker.stop();
      go.open();
      await stopping;
      await expect(running.status()).resolves.toMatchObject({ result: 'finished' });
      await expect(waiting.status()).resolves.toMatchObject({ attempt: 0 });
      await expect(waiting.cancel()).resolves.toMatchObject({ wasExecuting: false });
    });

    it('R-WO8: what does not finish in time is told so, and goes back at no cost', async () => {
      const reasons: unknown[] = [];
      const started = new Gate();
      const deaf = defineTask({
        type: unique('deaf'),
        run: (_, { signal, attempt }) => {
          if (attempt > 1) return 'second try';
          signal.addEventListener('abort', () => reasons.push(signal.reason));
          started.open();
          return new Promise<never>(() => undefined);
        },
      });
      const polite = defineTask({
        type: unique('polite'),
        run: (_, { signal, attempt }) => (attempt > 1 ? 'second try' : rejectedOnAbort(signal)),
      });
      const handles = await working(
        [deaf, polite],
        async (worker) => {
          const submitted = [await sluice.submit(deaf, {}), await sluice.submit(polite, {})];
          await started.passed;
          await until('both to run', () => worker.inFlight === 2);
          return submitted;
        },
        { drainTimeoutMs: 10 },
      );
      expect(reasons).toMatchObject([{ why: 'drain' }]);
      await working([deaf, polite], async () => {
        const ended = await Promise.all(handles.map((handle) => handle.ended()));
        const backAtNoCost = {
          status: 'completed',
          result: 'second try',
          attempt: 2,
          retryCount: 0,
        };
        expect(ended).toMatchObject([backAtNoCost, backAtNoCost]);
      });
    });

    it('starts and stops as often as it is told to, and can be stopped first', async () => {
      const echo = defineTask({ type: unique('echo'), run: (input) => input });
      const worker = new Worker(transport.api, [echo], { log: silentLog });
      await Promise.all([worker.start(), worker.start()]);
      const id = registered(worker);
      await expect(transport.api.getWorker(id)).resolves.toMatchObject({ status: 'active' });
      await Promise.all([worker.stop(), worker.stop(), worker.stopped]);
      await until('the server to know', async () => {
        const view = await transport.api.getWorker(id).catch(isNotFound);
        return view === 'not found' || view.status === 'dead';
      });

      const unused = new Worker(transport.api, [echo], { log: silentLog });
      await unused.stop();
      await expect(unused.start()).rejects.toThrow('does not start again');
    });

    it('R-WO5: leaves when the server asks it to', async () => {
      const echo = defineTask({ type: unique('echo'), run: (input) => input });
      const api = withTerms(transport.api, { heartbeatIntervalMs: 50, leaseMs: 60_000 });
      const worker = new Worker(api, [echo], { log: silentLog });
      await worker.start();
      await transport.api.drainWorker(registered(worker));
      await worker.stopped;
    });

    it('R-WO9: what finished while the server was away is reported when it is back, not run again', async () => {
      let runs = 0;
      const started = new Gate();
      const go = new Gate();
      const finished = new Gate();
      const slow = defineTask({
        type: unique('slow'),
        run: async () => {
          runs += 1;
          started.open();
          await go.passed;
          finished.open();
          return 'kept';
        },
      });
      await working([slow], async (worker) => {
        const handle = await sluice.submit(slow, {});
        await started.passed;
        await transport.cut();
        go.open();
        await finished.passed;
        await until('the slot to be free', () => worker.inFlight === 0);
        await transport.restore();
        await expect(handle.result()).resolves.toBe('kept');
        await expect(handle.status()).resolves.toMatchObject({ attempt: 1 });
        expect(runs).toBe(1);
        // And it goes on as if nothing had happened.
        await expect((await sluice.submit(slow, {})).result()).resolves.toBe('kept');
      });
    });

    it('registers again when the server does not know it, and its leases stay good', async () => {
      const started = new Gate();
      const go = new Gate();
      const slow = defineTask({
        type: unique('slow'),
        run: async () => {
          started.open();
          await go.passed;
          return 'under a new id';
        },
      });
      let unknown: WorkerId | null = null;
      const api = withCall(transport.api, 'report', (report) => async (workerId, reports) => {
        unknown ??= workerId;
        if (workerId === unknown) throw new SluiceError('worker_unknown', 'never heard of it');
        return report(workerId, reports);
      });
      await working(
        [slow],
        async (worker) => {
          const before = worker.id;
          const handle = await sluice.submit(slow, {});
          await started.passed;
          go.open();
          await expect(handle.result()).resolves.toBe('under a new id');
          await expect(handle.status()).resolves.toMatchObject({ attempt: 1 });
          expect(worker.id).not.toBe(before);
        },
        { api },
      );
    });

    it('R-WO12: lets go of its tasks before the leases lapse when no heartbeat arrives', async () => {
      const started = new Gate();
      const told = new Gate<unknown>();
      const endless = defineTask({
        type: unique('endless'),
        run: (_, { signal }: HandlerContext) => {
          signal.addEventListener('abort', () => told.open(signal.reason));
          started.open();
          return rejectedOnAbort(signal);
        },
      });
      const api = withTerms(transport.api, { heartbeatIntervalMs: 20, leaseMs: 400 });
      await working(
        [endless],
        async (worker) => {
          const handle = await sluice.submit(endless, {});
          await started.passed;
          await transport.cut();
          await expect(told.passed).resolves.toEqual(new TaskAbortedError('lease_lost'));
          await until('the slot to be free', () => worker.inFlight === 0);
          await transport.restore();
          await expect(handle.status()).resolves.toMatchObject({ error: null });
          await handle.cancel();
        },
        { api },
      );
    });

    it('does not start where it is refused', async () => {
      const echo = defineTask({ type: unique('echo'), run: (input) => input });
      const api = withCall(
        transport.api,
        'register',
        () => () => Promise.reject(new SluiceError('unauthorized', 'no such key')),
      );
      const worker = new Worker(api, [echo], { log: silentLog });
      await expect(worker.start()).rejects.toMatchObject({ code: 'unauthorized' });
      await worker.stop();
    });

    it('waits for a server that is not there yet', async () => {
      const echo = defineTask({ type: unique('echo'), run: ({ text }) => text ?? null });
      await transport.cut();
      const worker = new Worker(transport.api, [echo], { log: silentLog });
      const starting = worker.start();
      await transport.restore();
      await starting;
      await expect((await sluice.submit(echo, { text: 'here' })).result()).resolves.toBe('here');
      await worker.stop();
    });
  });

  async function submitAll<Result>(
    definition: ReturnType<typeof defineTask<Result>>,
    count: number,
  ) {
    const submitted = await sluice.submitMany(
      definition,
      Array.from({ length: count }, (_, i) => ({ input: { i } })),
    );
    return submitted.map((one) => {
      if (one.kind === 'refused') throw one.error;
      return one.handle;
    });
  }
}

function unique(name: string): string {
  return `${name}-${randomUUID()}`;
}

function rejectedOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

function registered({ id }: Worker): WorkerId {
  if (id === null) throw new Error('The worker has not registered');
  return id;
}

function isNotFound(error: unknown): 'not found' {
  if (error instanceof SluiceError && error.code === 'worker_not_found') return 'not found';
  throw error;
}
