import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attemptErrorCodes } from './attempt-error.js';
import { priorities } from './priority.js';
import {
  backoffMs,
  judgeFailure,
  maxDeferrals,
  maxRetryAfterSeconds,
  nextTimeoutSeconds,
  type Excuse,
  type FailedAttempt,
} from './retry-policy.js';
import { defaultTaskPolicy } from './task-policy.js';

const {
  rateLimited,
  unavailable,
  quotaExhausted,
  unauthorized,
  forbidden,
  timeout,
  outOfMemory,
  invalidInput,
  resultTooLarge,
} = attemptErrorCodes;
const capMs = { high: 10_000, medium: 30_000, low: 60_000 };

const code = fc.constantFrom(...Object.values(attemptErrorCodes), 'MODEL_SAID_NO');
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const failedAttempt = fc.record({
  priority: fc.constantFrom(...priorities),
  retryCount: fc.nat(40),
  maxRetries: fc.nat(20),
  deferrals: fc.nat(150),
  timeoutSeconds: fc.integer({ min: 1, max: 90_000 }),
  error: fc.record(
    {
      code,
      message: fc.constant('it went wrong'),
      retriable: fc.boolean(),
      retryAfterSeconds: fc.double({ min: 0, max: 10_000, noNaN: true }),
    },
    { requiredKeys: ['code', 'message', 'retriable'] },
  ),
});

function failed(change: Partial<FailedAttempt> & { code?: string } = {}): FailedAttempt {
  const { code: errorCode = 'MODEL_SAID_NO', ...rest } = change;
  return {
    priority: 'medium',
    retryCount: 0,
    maxRetries: 3,
    deferrals: 0,
    timeoutSeconds: 600,
    error: { code: errorCode, message: 'it went wrong', retriable: true },
    ...rest,
  };
}

describe('backoff', () => {
  it('R-RE2: doubles from a second, with up to 30 % on top', () => {
    expect([0, 1, 2, 3].map((retryCount) => backoffMs(failed({ retryCount }), 0))).toEqual([
      1000, 2000, 4000, 8000,
    ]);
    expect(backoffMs(failed({ retryCount: 2 }), 0.5)).toBe(4600);
  });

  it('R-RE2: stays between 2^n seconds and 130 % of that, under the cap of its priority', () => {
    fc.assert(
      fc.property(failedAttempt, random, (attempt, draw) => {
        const { error, priority, retryCount } = attempt;
        if (error.retryAfterSeconds !== undefined) return;
        const factor = [rateLimited, unavailable, quotaExhausted].some((one) => one === error.code)
          ? 2
          : 1;
        const leastMs = Math.min(2 ** retryCount * 1000, capMs[priority]);
        const mostMs = Math.min(2 ** retryCount * 1300, capMs[priority]);
        const delayMs = backoffMs(attempt, draw);
        expect(delayMs).toBeGreaterThanOrEqual(factor * leastMs);
        expect(delayMs).toBeLessThanOrEqual(factor * mostMs);
      }),
    );
  });

  it('R-RE2: twice as long when the service pushes back and gives no time', () => {
    for (const pushBack of [rateLimited, unavailable]) {
      expect(backoffMs(failed({ code: pushBack }), 0.5)).toBe(2 * backoffMs(failed(), 0.5));
    }
  });

  it('R-RE2: retry_after_seconds is obeyed, up to an hour', () => {
    fc.assert(
      fc.property(failedAttempt, random, (attempt, draw) => {
        const { retryAfterSeconds } = attempt.error;
        if (retryAfterSeconds === undefined) return;
        const believedMs = Math.min(retryAfterSeconds, maxRetryAfterSeconds) * 1000;
        const delayMs = backoffMs(attempt, draw);
        expect(delayMs).toBeGreaterThanOrEqual(believedMs);
        expect(delayMs).toBeLessThanOrEqual(believedMs + 1);
      }),
    );
  });

  it('R-RE2: is in whole milliseconds, as the store keeps them', () => {
    fc.assert(
      fc.property(failedAttempt, random, (attempt, draw) => {
        expect(Number.isSafeInteger(backoffMs(attempt, draw))).toBe(true);
      }),
    );
  });
});

describe('the next timeout', () => {
  it('R-RE3: half as long again after TIMEOUT or OUT_OF_MEMORY, at most an hour', () => {
    for (const needsMore of [timeout, outOfMemory]) {
      expect(nextTimeoutSeconds(600, needsMore)).toBe(900);
      expect(nextTimeoutSeconds(3000, needsMore)).toBe(3600);
    }
  });

  it('R-RE3: never shrinks, grows to no more than an hour, and only for want of time or memory', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 90_000 }), code, (seconds, errorCode) => {
        const next = nextTimeoutSeconds(seconds, errorCode);
        const needsMore = errorCode === timeout || errorCode === outOfMemory;
        expect(next).toBeGreaterThanOrEqual(seconds);
        if (!needsMore) expect(next).toBe(seconds);
        if (next > seconds) expect(next).toBeLessThanOrEqual(3600);
        expect(Number.isInteger(next)).toBe(true);
      }),
    );
  });
});

describe('the verdict on a failed attempt', () => {
  it('R-RE4: by default 5, 3 and 2 retries by priority', () => {
    expect(defaultTaskPolicy.maxRetries).toEqual({ high: 5, medium: 3, low: 2 });
  });

  it('R-RE4: exactly max_retries retries, then a dead letter that says so', () => {
    const verdicts = [0, 1, 2, 3].map((retryCount) => judgeFailure(failed({ retryCount }), 0));
    expect(verdicts.map(({ kind }) => kind)).toEqual(['retry', 'retry', 'retry', 'dead_letter']);
    expect(verdicts[3]).toMatchObject({ reason: 'all 3 retries are spent' });
    expect(judgeFailure(failed({ maxRetries: 0 }), 0).kind).toBe('dead_letter');
  });

  it('R-RE4: a failure that is not retriable, or never could be, is not retried', () => {
    for (const hopeless of [invalidInput, resultTooLarge]) {
      expect(judgeFailure(failed({ code: hopeless }), 0).kind).toBe('dead_letter');
    }
    const error = { code: rateLimited, message: 'no', retriable: false };
    expect(judgeFailure(failed({ error }), 0).kind).toBe('dead_letter');
  });

  it('R-RE9: RATE_LIMITED is excused by its queue, or costs a retry as any failure', () => {
    const limited = (retryCount: number, isExcused: boolean) =>
      judgeFailure(failed({ code: rateLimited, retryCount }), 0, isExcused ? { restMs: 0 } : null);
    expect(limited(3, true).kind).toBe('defer');
    expect(limited(2, false).kind).toBe('retry');
    expect(limited(3, false).kind).toBe('dead_letter');
    expect(maxDeferrals).toBe(100);
  });

  it('R-RE4: a key that is refused is not retried, unless its queue waits for that', () => {
    for (const denied of [unauthorized, forbidden]) {
      const judged = (excuse: Excuse | null, deferrals = 0) =>
        judgeFailure(failed({ code: denied, deferrals }), 0, excuse);
      expect(judged(null)).toEqual({ kind: 'dead_letter', reason: `${denied} is not retried` });
      expect(judged({ restMs: 5_000 })).toEqual({ kind: 'defer', delayMs: 5_000 });
      expect(judged({ restMs: 0 }, maxDeferrals).kind).toBe('dead_letter');
      const error = { code: denied, message: 'no', retriable: false };
      expect(judgeFailure(failed({ error }), 0, { restMs: 0 }).kind).toBe('dead_letter');
    }
  });

  it('R-RE9: what is excused costs nothing, up to 100 times; it rests as long as it is told to', () => {
    const excused = (change: Partial<FailedAttempt>, restMs: number) =>
      judgeFailure(failed({ code: unavailable, ...change }), 0, { restMs });
    expect(excused({ retryCount: 3 }, 0)).toEqual({ kind: 'defer', delayMs: 16_000 });
    expect(excused({ retryCount: 0 }, 61_000)).toEqual({ kind: 'defer', delayMs: 61_000 });
    expect(excused({ deferrals: maxDeferrals }, 0).kind).toBe('retry');
    expect(excused({ deferrals: maxDeferrals, retryCount: 3 }, 0).kind).toBe('dead_letter');
    expect(judgeFailure(failed({ code: unavailable }), 0).kind).toBe('retry');
  });

  it('R-RE4: whatever happens, a task comes to an end', () => {
    fc.assert(
      fc.property(failedAttempt, random, fc.boolean(), (start, draw, isExcused) => {
        let attempt: FailedAttempt = start;
        for (let attempts = 1; ; attempts += 1) {
          const verdict = judgeFailure(attempt, draw, isExcused ? { restMs: 0 } : null);
          if (verdict.kind === 'dead_letter') return;
          const { retryCount, deferrals } = attempt;
          attempt =
            verdict.kind === 'retry'
              ? { ...attempt, retryCount: retryCount + 1, timeoutSeconds: verdict.timeoutSeconds }
              : { ...attempt, deferrals: deferrals + 1 };
          expect(attempts).toBeLessThanOrEqual(start.maxRetries + maxDeferrals);
        }
      }),
    );
  });

  it('R-RE3: a retry brings the next timeout', () => {
    expect(judgeFailure(failed({ code: timeout }), 0)).toEqual({
      kind: 'retry',
      delayMs: 1000,
      timeoutSeconds: 900,
    });
  });
});
