import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Lease, TaskId } from '../domain/ids.js';
import type { ClaimedTask } from '../protocol/workers-api.js';
import { silentLog } from '../runtime/log.js';
import { TaskAbortedError, type AbortCause } from './errors.js';
import { execute, type Outcome } from './execution.js';
import type { TaskHandler } from './handler.js';
import { ProgressLine } from './progress.js';
import { Stop } from './stop.js';
import { TaskContext } from './task-context.js';

const task: ClaimedTask = {
  taskId: '01900000-0000-7000-8000-000000000000' as TaskId,
  taskType: 'test',
  queue: 'default',
  parameters: { text: 'hello' },
  timeoutSeconds: 60,
  attempt: 1,
  lease: 'b9ee9e0c-6f0e-4d7c-9f63-0d5b2c1b7f10' as Lease,
  priority: 'medium',
  effectivePriority: 'medium',
  retryCount: 0,
  workflowId: null,
  traceId: 'trace',
  traceparent: null,
  waitedSeconds: 0,
  deadline: new Date(0),
};

function begin(
  handler: Omit<TaskHandler, 'type'>,
  changes: Partial<ClaimedTask> = {},
): { outcome: Promise<Outcome>; abort: (why: AbortCause) => void } {
  const claimed = { ...task, ...changes };
  const stop = new Stop();
  const progress = new ProgressLine(async () => undefined);
  const context = new TaskContext(claimed, stop, progress, silentLog);
  return {
    // As in a worker: it may be told to stop before its handler runs.
    outcome: Promise.resolve({
      task: claimed,
      handler: { type: 'test', ...handler },
      context,
      stop,
    }).then(execute),
    abort: (why) => stop.abort(new TaskAbortedError(why)),
  };
}

function rejectedOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

describe('execute', () => {
  it('never rejects, also when what is thrown can not even be looked at', async () => {
    const unreadable: unknown = new Proxy(
      {},
      {
        getPrototypeOf: () => {
          throw new Error('no');
        },
      },
    );
    const throwing = {
      toJSON: () => {
        throw unreadable;
      },
    };
    await expect(begin({ run: () => throwing }).outcome).resolves.toMatchObject({ kind: 'failed' });
  });

  it('a result goes through as JSON; none is null', async () => {
    await expect(begin({ run: (input) => ({ input }) }).outcome).resolves.toEqual({
      kind: 'completed',
      result: { input: { text: 'hello' } },
    });
    await expect(begin({ run: () => undefined }).outcome).resolves.toEqual({
      kind: 'completed',
      result: null,
    });
  });

  it('a handler may take out or copy what it is given', async () => {
    const run: TaskHandler['run'] = (_, context) => {
      const copy = { ...context };
      const { progress, usage } = copy;
      progress(10);
      usage({ tokens: 1 });
      return {
        keys: Object.keys(context).sort(),
        of: copy.task.taskId,
        ended: copy.signal.aborted,
      };
    };
    await expect(begin({ run }).outcome).resolves.toMatchObject({
      result: {
        keys: ['attempt', 'log', 'progress', 'signal', 'task', 'usage'],
        of: task.taskId,
        ended: false,
      },
    });
  });

  it('the handler gets what the schema made of the parameters', async () => {
    const input = z.object({ text: z.string().transform((text) => text.length) });
    const { outcome } = begin({ input, run: (value) => value });
    await expect(outcome).resolves.toEqual({ kind: 'completed', result: { text: 5 } });
  });

  it("R-WO11: parameters that don't fit are INVALID_INPUT with the schema's issues", async () => {
    const input = z.object({ text: z.array(z.string()) });
    await expect(begin({ input, run: () => 1 }).outcome).resolves.toMatchObject({
      kind: 'failed',
      error: {
        code: 'INVALID_INPUT',
        retriable: false,
        details: [{ path: '/text', message: expect.any(String) as string }],
      },
    });
  });

  it.each([
    ['BigInt', { count: 1n }, 'A BigInt at /count is not JSON'],
    ['function', () => 1, 'A function is not JSON'],
    ['number that is none', [NaN], 'NaN at /0 is not JSON'],
  ])('a result with a %s fails for good and says where', async (_, result, message) => {
    const { outcome } = begin({ run: () => result });
    await expect(outcome).resolves.toMatchObject({
      kind: 'failed',
      error: {
        code: 'RESULT_NOT_JSON',
        retriable: false,
        message: expect.stringContaining(message) as string,
      },
    });
  });

  it('a handler that throws at once, or a string, fails like any other', async () => {
    const { outcome } = begin({
      run: () => {
        throw 'plain text' as unknown as Error;
      },
    });
    await expect(outcome).resolves.toEqual({
      kind: 'failed',
      error: { code: 'ERROR', message: 'plain text', retriable: true },
    });
  });

  it('R-OB6: an error that a handler throws says where, in details.stack', async () => {
    const { outcome } = begin({
      run: () => {
        throw new TypeError('no such field', { cause: new Error('the file is empty') });
      },
    });
    const { error } = (await outcome) as unknown as {
      error: { code: string; details: { stack: string } };
    };
    expect(error.code).toBe('TypeError');
    expect(error.details.stack).toMatch(/^TypeError: no such field\n {4}at .*execution\.test\.ts/);
    expect(error.details.stack).toContain('\nCaused by Error: the file is empty\n');
  });

  it('R-WO6: at the timeout the signal fires, and the attempt ends even if that is ignored', async () => {
    let reason: unknown;
    const never = new Promise(() => undefined);
    const { outcome } = begin(
      {
        run: (_, { signal }) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason;
          });
          return never;
        },
      },
      { timeoutSeconds: 0.01 },
    );
    await expect(outcome).resolves.toMatchObject({
      kind: 'failed',
      error: { code: 'TIMEOUT', retriable: true },
    });
    expect(reason).toMatchObject({ name: 'TaskAbortedError', why: 'timeout' });
  });

  it('R-WO6: what a handler throws after its timeout changes nothing', async () => {
    const { outcome } = begin(
      {
        run: (_, { signal }) =>
          rejectedOnAbort(signal).catch(() => Promise.reject(new Error('late'))),
      },
      { timeoutSeconds: 0.01 },
    );
    await expect(outcome).resolves.toMatchObject({ error: { code: 'TIMEOUT' } });
  });

  it('R-RE4: a failure is judged by the policy of its type, whatever made it fail', async () => {
    const retry = { codes: { PARSE_ERROR: false, TIMEOUT: 1 }, delaySeconds: [7] } as const;
    const run = () => {
      throw Object.assign(new Error('no'), { code: 'PARSE_ERROR' });
    };
    await expect(begin({ retry, run }).outcome).resolves.toMatchObject({
      error: { code: 'PARSE_ERROR', retriable: false },
    });
    const endless = { retry, run: () => new Promise(() => undefined) };
    const again = begin(endless, { timeoutSeconds: 0.01 });
    await expect(again.outcome).resolves.toMatchObject({
      error: { code: 'TIMEOUT', retriable: true, retryAfterSeconds: 7 },
    });
    const last = begin(endless, { timeoutSeconds: 0.01, retryCount: 1 });
    await expect(last.outcome).resolves.toMatchObject({
      error: { code: 'TIMEOUT', retriable: false },
    });
  });

  it('R-WO6: the time that a handler blocked its process before it waits counts', async () => {
    const { outcome } = begin(
      {
        run: async () => {
          const untilMs = performance.now() + 250;
          while (performance.now() < untilMs);
          await delay(150);
        },
      },
      { timeoutSeconds: 0.2 },
    );
    await expect(outcome).resolves.toMatchObject({ error: { code: 'TIMEOUT' } });
  });

  it('a timeout of months does not fire at once', async () => {
    const { outcome } = begin({ run: () => delay(20, 'done') }, { timeoutSeconds: 10_000_000 });
    await expect(outcome).resolves.toEqual({ kind: 'completed', result: 'done' });
  });

  it.each(['cancelled', 'lease_lost', 'drain'] as const)(
    'nothing is reported when it was told to stop: %s',
    async (why) => {
      let tellRunning: () => void = () => undefined;
      const running = new Promise<void>((resolve) => (tellRunning = resolve));
      const { outcome, abort } = begin({
        run: (_, { signal }) => {
          tellRunning();
          return rejectedOnAbort(signal);
        },
      });
      await running;
      abort(why);
      await expect(outcome).resolves.toEqual({ kind: 'abandoned', why });
    },
  );

  it('a handler does not begin what it was told to stop before', async () => {
    let hasRun = false;
    const { outcome, abort } = begin({ run: () => (hasRun = true) });
    abort('drain');
    await expect(outcome).resolves.toEqual({ kind: 'abandoned', why: 'drain' });
    expect(hasRun).toBe(false);
  });

  it('what finishes in spite of a drain is reported, but not in spite of a cancel', async () => {
    for (const [why, kind] of [
      ['drain', 'completed'],
      ['cancelled', 'abandoned'],
    ] as const) {
      const { outcome, abort } = begin({
        run: () => {
          queueMicrotask(() => abort(why));
          return new Promise((resolve) => setImmediate(resolve, 'done'));
        },
      });
      await expect(outcome).resolves.toMatchObject({ kind });
    }
  });
});
