import { describe, expect, it } from 'vitest';
import { defineTask } from '../../src/client/define-task.js';
import { Gate } from '../support/gate.js';
import { until } from '../support/until.js';
import { withCall } from './transport.js';
import { unique, type Workbench } from './workbench.js';

function throwing(thrown: unknown): () => never {
  return () => {
    throw thrown as Error;
  };
}

const unreadable = throwing(new Error('not even this can be read'));

function deep(levels: number): unknown {
  let value: unknown = 'bottom';
  for (let i = 0; i < levels; i += 1) value = [value];
  return value;
}

/** Whatever a handler does wrong ends its own attempt, and no other. */
export function describeMisbehaviour(name: string, bench: () => Workbench): void {
  /** How the task ended whose handler does this, with a neighbour that must not notice. */
  async function endOf(run: () => unknown) {
    const odd = defineTask({ type: unique('odd'), maxRetries: 0, run });
    const neighbour = defineTask({ type: unique('neighbour'), run: () => 'undisturbed' });
    return bench().working(
      [odd, neighbour],
      async (worker) => {
        const handle = await bench().sluice.submit(odd, {});
        const ended = await handle.ended();
        const after = await bench().sluice.submit(neighbour, {});
        await expect(after.result()).resolves.toBe('undisturbed');
        await until('all slots to be free', () => worker.inFlight === 0);
        return ended;
      },
      { concurrency: 1 },
    );
  }

  describe(`a worker ${name}`, () => {
    it.each<[string, () => unknown, string, string]>([
      ['a string', throwing('just text'), 'ERROR', 'just text'],
      ['undefined', throwing(undefined), 'ERROR', 'undefined'],
      ['null', throwing(null), 'ERROR', 'null'],
      ['a frozen object', throwing(Object.freeze({ a: 1 })), 'ERROR', '{"a":1}'],
      [
        'an error with a getter that throws',
        throwing(Object.defineProperty(new Error('no'), 'message', { get: unreadable })),
        'ERROR',
        'can not be read',
      ],
      [
        'a proxy that throws',
        throwing(new Proxy({}, { getPrototypeOf: unreadable })),
        'ERROR',
        'can not be read',
      ],
      ['an error with text that Postgres does not take', throwing(new Error('a\0b')), 'ERROR', 'a'],
      [
        'an error with more details than are kept',
        throwing(Object.assign(new RangeError('no'), { details: 'x'.repeat(1e6) })),
        'RangeError',
        'no',
      ],
      ['by rejecting', () => Promise.reject(new TypeError('later')), 'TypeError', 'later'],
    ])('a handler may throw %s', async (_, run, code, message) => {
      await expect(endOf(run)).resolves.toMatchObject({
        status: 'dead_letter',
        error: { code, message: expect.stringContaining(message) as string, retriable: true },
      });
    });

    it.each<[string, () => unknown, string]>([
      ['deeper than the stack', () => deep(1_000_000), 'RESULT_NOT_JSON'],
      ['deeper than JSON may be', () => deep(1_000), 'RESULT_NOT_JSON'],
      ['larger than a mebibyte', () => 'x'.repeat(1024 * 1024), 'RESULT_TOO_LARGE'],
      ['a gigabyte of zeros', () => new Uint8Array(1e9), 'RESULT_TOO_LARGE'],
      ['a toJSON that throws', () => ({ toJSON: unreadable }), 'RESULT_NOT_JSON'],
      [
        'a getter that throws',
        () => Object.defineProperty({}, 'a', { enumerable: true, get: unreadable }),
        'RESULT_NOT_JSON',
      ],
    ])('a handler may return %s', async (_, run, code) => {
      await expect(endOf(run)).resolves.toMatchObject({
        status: 'dead_letter',
        attempt: 1,
        error: { code, retriable: false },
      });
    });

    it('R-WO6: a handler may throw after its timeout', async () => {
      const thrown = new Gate();
      const late = defineTask({
        type: unique('late'),
        timeoutSeconds: 1,
        maxRetries: 0,
        run: (_, { signal }) =>
          new Promise<never>((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              setTimeout(() => {
                reject(new Error('after the end'));
                thrown.open();
              }, 10);
            });
          }),
      });
      await bench().working([late], async (worker) => {
        const handle = await bench().sluice.submit(late, {});
        await expect(handle.ended()).resolves.toMatchObject({ error: { code: 'TIMEOUT' } });
        await thrown.passed;
        await until('its slot to be free', () => worker.inFlight === 0);
      });
    });

    it('a handler may tell its progress a thousand times, and what is none', async () => {
      let calls = 0;
      const api = withCall(bench().api, 'progress', (progress) => (...told) => {
        calls += 1;
        return progress(...told);
      });
      const seen = new Gate();
      const wordy = defineTask({
        type: unique('wordy'),
        run: async (_, { progress }) => {
          for (const percent of [NaN, -1, 101, Infinity]) progress(percent, 'nonsense');
          for (let i = 0; i < 1_000; i += 1) progress(i / 10, 'x'.repeat(5_000));
          await seen.passed;
          return 'done';
        },
      });
      await bench().working(
        [wordy],
        async () => {
          const handle = await bench().sluice.submit(wordy, {});
          await until('the last of it', async () => {
            const { progress } = await handle.status();
            return progress?.percent === 99.9 && progress.message?.length === 1_000;
          });
          seen.open();
          await expect(handle.result()).resolves.toBe('done');
          expect(calls).toBeLessThan(10);
        },
        { api },
      );
    });
  });
}
