import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { defineTask } from '../../src/client/define-task.js';
import type { TaskView } from '../../src/protocol/tasks-api.js';
import { until } from '../support/until.js';
import { unique, type Workbench } from './workbench.js';

/** What its handlers' errors mean, and the policies of their types. */
export function describeRetries(name: string, bench: () => Workbench): void {
  /** How a lone task of this type ended, in a queue of its own. */
  async function endOf(
    options: Omit<Parameters<typeof defineTask<unknown>>[0], 'type'>,
  ): Promise<TaskView> {
    const task = defineTask({ ...options, type: unique('task'), queue: unique('queue') });
    return bench().working([task], async () => (await bench().sluice.submit(task, {})).ended());
  }

  /** The errors of its attempts that failed, in order. */
  async function errorsOf({ taskId }: TaskView): Promise<unknown[]> {
    const { history } = await bench().api.getTask(taskId, { history: true });
    return (history?.attempts ?? []).flatMap(({ error }) => error ?? []);
  }

  describe(`a worker ${name}`, () => {
    it('R-RE9: a 429 that the handler lets through is put off at no cost', async () => {
      await using service = await startService([
        [429, { 'retry-after-ms': '1' }],
        [200, {}],
      ]);
      const ended = await endOf({ maxRetries: 0, run: () => callThrough(service.url) });
      expect(ended).toMatchObject({ status: 'completed', attempt: 2, retryCount: 0 });
      await expect(errorsOf(ended)).resolves.toMatchObject([
        { code: 'RATE_LIMITED', details: { status: 429 } },
      ]);
    });

    it('R-RE9: a 503 that the handler lets through is UNAVAILABLE', async () => {
      await using service = await startService([
        [503, { 'retry-after': '0' }],
        [200, {}],
      ]);
      const ended = await endOf({ maxRetries: 1, run: () => callThrough(service.url) });
      expect(ended).toMatchObject({ status: 'completed', attempt: 2 });
      await expect(errorsOf(ended)).resolves.toMatchObject([
        { code: 'UNAVAILABLE', details: { status: 503 } },
      ]);
    });

    it('R-RE9: a service that nobody reaches is UNAVAILABLE', async () => {
      const service = await startService([]);
      await service[Symbol.asyncDispose]();
      await expect(
        endOf({ maxRetries: 0, run: () => callThrough(service.url) }),
      ).resolves.toMatchObject({
        status: 'dead_letter',
        error: { code: 'UNAVAILABLE', retriable: true, details: { code: 'ECONNREFUSED' } },
      });
    });

    it.each([
      ['never', 'PARSE_ERROR', 1],
      ['once', 'FLAKY', 2],
      ['as often as the task says', 'OTHER', 3],
    ])('R-RE4: its type says that an error is retried %s', async (_, code, attempts) => {
      const ended = await endOf({
        maxRetries: 2,
        retry: { codes: { PARSE_ERROR: false, FLAKY: 1 }, delaySeconds: [0] },
        run: () => {
          throw Object.assign(new Error('no'), { code });
        },
      });
      expect(ended).toMatchObject({
        status: 'dead_letter',
        attempt: attempts,
        retryCount: attempts - 1,
        error: { code, retriable: code === 'OTHER' },
      });
    });

    it('R-RE2: its type says how long a retry waits, by its number and the error', async () => {
      const asked: unknown[] = [];
      const ended = await endOf({
        maxRetries: 2,
        retry: {
          delaySeconds: (retry, { code, message }) => {
            asked.push([retry, code, message]);
            return 0;
          },
        },
        run: (_, { attempt }) => {
          if (attempt < 3) throw new RangeError(`no ${attempt}`);
          return 'done';
        },
      });
      expect(ended).toMatchObject({ status: 'completed', attempt: 3 });
      expect(asked).toEqual([
        [1, 'RangeError', 'no 1'],
        [2, 'RangeError', 'no 2'],
      ]);
    });

    it('R-RE2: a delay that its type names is waited for', async () => {
      const task = defineTask({
        type: unique('task'),
        retry: { delaySeconds: [3_000] },
        run: () => {
          throw new Error('no');
        },
      });
      await bench().working([task], async () => {
        const handle = await bench().sluice.submit(task, {});
        const { runAt, createdAt } = await until('it to wait for its retry', async () => {
          const view = await handle.status();
          return view.retryCount === 1 && view;
        });
        const waitMs = (runAt?.getTime() ?? 0) - createdAt.getTime();
        expect(waitMs).toBeGreaterThanOrEqual(3_000_000);
        expect(waitMs).toBeLessThan(3_600_000);
        await handle.cancel();
      });
    });
  });
}

/** As a handler is often written: whatever is not fine is thrown with its status and headers. */
async function callThrough(url: string): Promise<string> {
  const response = await fetch(url);
  const { status, headers } = response;
  const text = await response.text();
  if (!response.ok) throw Object.assign(new Error(`${status}: ${text}`), { status, headers });
  return text;
}

interface Service extends AsyncDisposable {
  readonly url: string;
}

type Answer = readonly [status: number, headers: Readonly<Record<string, string>>];

/** Answers one after the other; the last one again and again. */
async function startService(answers: readonly Answer[]): Promise<Service> {
  let calls = 0;
  const server = createServer((_, response) => {
    const [status, headers] = answers[calls] ?? answers.at(-1) ?? [500, {}];
    calls += 1;
    response.writeHead(status, { ...headers, connection: 'close' }).end('an answer');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
