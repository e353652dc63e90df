import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTask } from '../../src/client/define-task.js';
import { TaskFailedError } from '../../src/client/task-handle.js';
import {
  NonRetriableError,
  RateLimitedError,
  RetryAfterError,
  TaskAbortedError,
} from '../../src/worker/errors.js';
import { Gate } from '../support/gate.js';
import { until } from '../support/until.js';
import { withCall, withTerms } from './transport.js';
import { rejectedOnAbort, unique, type Workbench } from './workbench.js';

/** What a handler is given, and what becomes of whatever it does. */
export function describeHandlers(name: string, bench: () => Workbench): void {
  describe(`a worker ${name}`, () => {
    it('R-WO11: runs a task and answers with what its handler returned', async () => {
      const add = defineTask({
        type: unique('add'),
        input: z.object({ a: z.number(), b: z.number().default(1) }),
        run: ({ a, b }, { task, attempt }) => ({ sum: a + b, queue: task.queue, attempt }),
      });
      await bench().working([add], async () => {
        const handle = await bench().sluice.submit(add, { a: 2 }, { queue: add.type });
        await expect(handle.result()).resolves.toEqual({ sum: 3, queue: add.type, attempt: 1 });
      });
    });

    it('R-RE4: an error that another attempt would not mend goes to the dead letters', async () => {
      const bad = defineTask({
        type: unique('bad'),
        run: () => {
          throw new NonRetriableError('the key is wrong', { code: 'BAD_KEY', details: { key: 1 } });
        },
      });
      await bench().working([bad], async () => {
        const handle = await bench().sluice.submit(bad, {});
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
      await bench().working([flaky], async () => {
        const handle = await bench().sluice.submit(flaky, {});
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
      await bench().working([limited], async () => {
        const handle = await bench().sluice.submit(limited, {}, { queue: limited.type });
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
      await bench().working([strict], async () => {
        const { taskId } = await bench().api.submit({
          taskType: type,
          parameters: { items: [{ n: 1 }, { n: 'two' }] },
        });
        await expect(bench().sluice.task(taskId).ended()).resolves.toMatchObject({
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
      await bench().working([bigint, text, fine], async () => {
        const handles = await Promise.all([
          bench().sluice.submit(bigint, {}),
          bench().sluice.submit(text, {}),
          bench().sluice.submit(fine, {}),
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
      await bench().working([size], async () => {
        const sizes = [1, 2 * 1024 * 1024, 20 * 1024 * 1024, 2];
        const handles = await Promise.all(
          sizes.map((bytes) => bench().sluice.submit(size, { bytes })),
        );
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
      await bench().working(
        [deaf, quick],
        async () => {
          const handle = await bench().sluice.submit(deaf, {});
          const after = await bench().sluice.submit(quick, {});
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
      await bench().working(
        [endless],
        async (worker) => {
          const handle = await bench().sluice.submit(endless, {});
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
          api: withTerms(bench().api, { heartbeatIntervalMs: 600_000, leaseMs: 1e9 }),
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
      await bench().working([member], async () => {
        const workflowId = randomUUID();
        const first = await bench().sluice.submit(member, { name: 'first' }, { workflowId });
        const second = await bench().sluice.submit(member, { name: 'second' }, { workflowId });
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
      await bench().working([steps], async () => {
        const handle = await bench().sluice.submit(steps, {});
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
      await bench().working([call, silent], async () => {
        const handles = [
          await bench().sluice.submit(call, {}),
          await bench().sluice.submit(silent, {}),
        ];
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
        await bench().working([call], async () => {
          const { status, error } = await (await bench().sluice.submit(call, {})).ended();
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

    it('R-WO11: what a handler logs carries its task, attempt and trace', async () => {
      const lines: Record<string, unknown>[] = [];
      const log = pino(
        { level: 'info', base: null },
        { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) },
      );
      const wordy = defineTask({
        type: unique('wordy'),
        run: (_, context) => context.log.info({ step: 1 }, 'reading'),
      });
      await bench().working(
        [wordy],
        async () => {
          const traceId = randomUUID();
          const handle = await bench().sluice.submit(wordy, {}, { traceId });
          await handle.ended();
          expect(lines).toMatchObject([
            {
              task_id: handle.id,
              task_type: wordy.type,
              attempt: 1,
              trace_id: traceId,
              step: 1,
              msg: 'reading',
            },
          ]);
        },
        { log },
      );
    });

    it('R-WO7: the signal of a cancelled task says so', async () => {
      const started = new Gate();
      const told = new Gate<unknown>();
      const endless = defineTask({
        type: unique('endless'),
        run: (_, { signal }) => {
          signal.addEventListener('abort', () => told.open(signal.reason));
          started.open();
          return rejectedOnAbort(signal);
        },
      });
      await bench().working([endless], async () => {
        const handle = await bench().sluice.submit(endless, {});
        await started.passed;
        await handle.cancel();
        await expect(told.passed).resolves.toEqual(new TaskAbortedError('cancelled'));
      });
    });

    it('R-WO12: progress that is refused tells the handler; its late result is not sent', async () => {
      const started = new Gate();
      const goOn = new Gate();
      const told = new Gate<unknown>();
      const late = defineTask({
        type: unique('late'),
        run: async (_, { signal, progress }) => {
          signal.addEventListener('abort', () => told.open(signal.reason));
          started.open();
          await goOn.passed;
          progress(50);
          await told.passed;
          return 'late';
        },
      });
      let ended: Promise<unknown> = Promise.resolve();
      const reported: unknown[] = [];
      // Somebody else ends the attempt with its very lease.
      const polling = withCall(bench().api, 'poll', (poll) => async (workerId, request, signal) => {
        const answer = await poll(workerId, request, signal);
        for (const { taskId, lease } of answer.tasks) {
          ended = started.passed.then(() =>
            bench().api.report(workerId, [{ taskId, lease, status: 'completed', result: 'early' }]),
          );
        }
        return answer;
      });
      const api = withCall(polling, 'report', (report) => (workerId, reports) => {
        reported.push(...reports);
        return report(workerId, reports);
      });
      await bench().working(
        [late],
        async (worker) => {
          const handle = await bench().sluice.submit(late, {});
          await started.passed;
          await ended;
          goOn.open();
          await expect(told.passed).resolves.toEqual(new TaskAbortedError('lease_lost'));
          await until('the slot to be free', () => worker.inFlight === 0);
          await expect(handle.result()).resolves.toBe('early');
        },
        { api },
      );
      expect(reported).toEqual([]);
    });

    it('R-WO11: a schema may take its time; what one throws fails the attempt, and is retried', async () => {
      const schema = (
        validate: (value: unknown) => Promise<StandardSchemaV1.Result<unknown>>,
      ): StandardSchemaV1<object, unknown> => ({
        '~standard': { version: 1, vendor: 'test', validate },
      });
      const slow = unique('slow');
      const broken = unique('broken');
      let looks = 0;
      const handlers = [
        {
          type: slow,
          input: schema(async () => {
            await new Promise((resolve) => setTimeout(resolve, 1));
            return { issues: [{ message: 'never', path: ['a', { key: 0 }] }] };
          }),
          run: () => 'not reached',
        },
        {
          type: broken,
          input: schema(async (value) => {
            looks += 1;
            if (looks === 1) throw new RetryAfterError(0, 'the schema is broken');
            return { value };
          }),
          run: () => 'the second time',
        },
      ];
      await bench().working(handlers, async () => {
        const submit = async (taskType: string) => {
          const { taskId } = await bench().api.submit({ taskType, parameters: {} });
          return bench().sluice.task(taskId).ended();
        };
        await expect(submit(slow)).resolves.toMatchObject({
          status: 'dead_letter',
          attempt: 1,
          error: { code: 'INVALID_INPUT', details: [{ path: '/a/0', message: 'never' }] },
        });
        await expect(submit(broken)).resolves.toMatchObject({
          status: 'completed',
          attempt: 2,
          result: 'the second time',
        });
      });
    });

    it('R-WO11: thousands of issues are INVALID_INPUT like one', async () => {
      const type = unique('strict');
      const strict = defineTask({
        type,
        input: z.object({ items: z.array(z.string()) }),
        run: () => null,
      });
      await bench().working([strict], async () => {
        const { taskId } = await bench().api.submit({
          taskType: type,
          parameters: { items: Array.from({ length: 5_000 }, (_, i) => i) },
        });
        const { status, error } = await bench().sluice.task(taskId).ended();
        expect({ status, error }).toMatchObject({
          status: 'dead_letter',
          error: { code: 'INVALID_INPUT', retriable: false },
        });
        expect(error?.details).toHaveLength(100);
      });
    });
  });
}
