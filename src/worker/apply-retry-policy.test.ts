import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { AttemptError } from '../domain/attempt-error.js';
import { silentLog } from '../runtime/log.js';
import { applyRetryPolicy, type RetryPolicy } from './apply-retry-policy.js';

function failure(code: string, change: Partial<AttemptError> = {}): AttemptError {
  return { code, message: 'no', retriable: true, ...change };
}

function applied(policy: RetryPolicy, error: AttemptError, retryCount = 0, log = silentLog) {
  return applyRetryPolicy(policy, error, { retryCount, log });
}

describe('R-RE4: which failures are retried', () => {
  const policy: RetryPolicy = { codes: { PARSE_ERROR: false, FLAKY: 1, ONCE_MORE: 0 } };

  it('not one whose code says never', () => {
    for (const code of ['PARSE_ERROR', 'ONCE_MORE']) {
      expect(applied(policy, failure(code))).toEqual(failure(code, { retriable: false }));
    }
  });

  it('one with a number until the task was retried as often', () => {
    const flaky = failure('FLAKY');
    expect([0, 1, 2].map((retries) => applied(policy, flaky, retries).retriable)).toEqual([
      true,
      false,
      false,
    ]);
  });

  it.each(['context_length_exceeded', 'BadRequestError', 'HTTP_400'])(
    'one by any of its names: %s',
    (name) => {
      const error = failure('context_length_exceeded');
      const names = ['context_length_exceeded', 'BadRequestError', 'HTTP_400'];
      const once = { retryCount: 1, log: silentLog, names };
      expect(applyRetryPolicy({ codes: { [name]: 1 } }, error, once).retriable).toBe(false);
      expect(applyRetryPolicy({ codes: { [name]: 2 } }, error, once).retriable).toBe(true);
    },
  );

  it('by its most specific name', () => {
    const names = ['context_length_exceeded', 'HTTP_400'];
    const codes = { HTTP_400: 3, context_length_exceeded: false } as const;
    const first = { retryCount: 0, log: silentLog, names };
    expect(applyRetryPolicy({ codes }, failure('X'), first).retriable).toBe(false);
  });

  it('one that its status alone says is final, if its type says so', () => {
    const final = failure('HTTP_404', { retriable: false });
    const told = { log: silentLog, names: ['HTTP_404'], finalStatus: 404 };
    const by = (policy: RetryPolicy, retryCount: number) =>
      applyRetryPolicy(policy, final, { ...told, retryCount }).retriable;
    expect(by({}, 0)).toBe(false);
    expect([0, 1, 2].map((retries) => by({ codes: { HTTP_404: 2 } }, retries))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('a refused key as any error, so that its queue is not stopped', () => {
    const denied = failure('UNAUTHORIZED');
    const told = { log: silentLog, names: ['UNAUTHORIZED', 'HTTP_401'], finalStatus: 401 };
    const by = (policy: RetryPolicy, retryCount = 0) =>
      applyRetryPolicy(policy, denied, { ...told, retryCount });
    expect(by({})).toBe(denied);
    expect(by({ codes: { HTTP_401: 1 } })).toEqual(failure('HTTP_401'));
    const last = by({ codes: { UNAUTHORIZED: 1 } }, 1);
    expect(last).toEqual(failure('HTTP_401', { retriable: false }));
    expect(by({ codes: { UNAUTHORIZED: false } }).code).toBe('UNAUTHORIZED');
  });

  it('any other as it says itself', () => {
    for (const code of ['OTHER', 'constructor', 'toString', '__proto__']) {
      expect(applied(policy, failure(code), 9)).toEqual(failure(code));
    }
    const final = failure('FLAKY', { retriable: false });
    expect(applied(policy, final)).toBe(final);
  });
});

describe('R-RE2: how long a retry waits', () => {
  it('as the list says, and its last value from then on', () => {
    const policy: RetryPolicy = { delaySeconds: [5, 30, 120] };
    const delays = [0, 1, 2, 3, 50].map(
      (retries) => applied(policy, failure('X'), retries).retryAfterSeconds,
    );
    expect(delays).toEqual([5, 30, 120, 120, 120]);
  });

  it('as the function says, of the number of the retry and the error', () => {
    const policy: RetryPolicy = {
      delaySeconds: (retry, { code }) => retry * (code === 'SLOW' ? 100 : 1),
    };
    expect(applied(policy, failure('X'), 1).retryAfterSeconds).toBe(2);
    expect(applied(policy, failure('SLOW'), 2).retryAfterSeconds).toBe(300);
    expect(applied(policy, failure('SLOW'), 90).retryAfterSeconds).toBe(3_600);
  });

  it('as the error says, if it names a time', () => {
    const timed = failure('X', { retryAfterSeconds: 0 });
    expect(applied({ delaySeconds: [5] }, timed)).toBe(timed);
  });

  it.each(['RATE_LIMITED', 'UNAVAILABLE'])(
    'as the service and its queue say, after %s: for a time of its own the whole queue would wait',
    (code) => {
      expect(applied({ delaySeconds: [3_000] }, failure(code))).toEqual(failure(code));
      expect(applied({ codes: { [code]: false } }, failure(code)).retriable).toBe(false);
    },
  );

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['answers nothing', () => undefined],
    ['answers a promise', async () => 1],
    ['answers a promise that rejects', () => Promise.reject(new Error('no'))],
    ['answers NaN', () => NaN],
    ['answers less than nothing', () => -1],
    ['never comes back', () => Infinity],
    ['answers a text', () => '5'],
  ])('as usual when the function %s, and a line is logged', (_, delaySeconds) => {
    const lines: string[] = [];
    const log = pino({ level: 'warn', base: null }, { write: (line: string) => lines.push(line) });
    const policy = { delaySeconds: delaySeconds as () => number };
    expect(applied(policy, failure('X'), 0, log)).toEqual(failure('X'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('retry.delaySeconds');
  });
});
