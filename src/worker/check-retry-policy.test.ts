import { describe, expect, it } from 'vitest';
import { SluiceError } from '../domain/errors.js';
import { checkRetryPolicy } from './check-retry-policy.js';

describe('R-RE4: a policy that makes no sense is refused with a sentence', () => {
  it.each<[unknown, string]>([
    [3, 'retry must be an object, not 3'],
    [null, 'retry must be an object, not null'],
    [{ codes: ['A'] }, 'retry.codes must be an object, not ["A"]'],
    [{ codes: { A: 'no' } }, 'retry.codes.A must be false or a number of retries, not "no"'],
    [{ codes: { A: true } }, 'retry.codes.A must be false or a number of retries, not true'],
    [{ codes: { A: -1 } }, 'retry.codes.A must be false or a number of retries, not -1'],
    [{ codes: { A: 1.5 } }, 'retry.codes.A must be false or a number of retries, not 1.5'],
    [{ codes: { 'two words': 1 } }, 'retry.codes names "two words", which no error'],
    [{ codes: { WORKER_LOST: false } }, 'WORKER_LOST: the server finds this error, not a worker'],
    [{ codes: { INVALID_INPUT: 2 } }, 'retry.codes.INVALID_INPUT: it is never retried'],
    [{ codes: { RATE_LIMITED: 2 } }, 'retry.codes.RATE_LIMITED must be false'],
    [{ codes: { HTTP_429: 2 } }, 'retry.codes.HTTP_429 must be false'],
    [{ delaySeconds: 5 }, 'delaySeconds must be a function or a list of seconds, not 5'],
    [{ delaySeconds: [] }, 'delaySeconds must be a function or a list of seconds, not []'],
    [{ delaySeconds: [1, -1] }, 'delaySeconds must hold seconds from 0 to 3600, not -1'],
    [{ delaySeconds: [1, 4_000] }, 'delaySeconds must hold seconds from 0 to 3600, not 4000'],
    [{ delaySeconds: ['1'] }, 'delaySeconds must hold seconds from 0 to 3600, not "1"'],
    [{ delaySeconds: [undefined] }, 'must hold seconds from 0 to 3600, not undefined'],
  ])('%j', (policy, sentence) => {
    const check = () => checkRetryPolicy('parse', policy);
    expect(check).toThrow(SluiceError);
    expect(check).toThrow(/^parse: /);
    expect(check).toThrow(sentence);
  });

  it.each<[unknown]>([
    [undefined],
    [{}],
    [{ codes: {}, delaySeconds: [0] }],
    [{ codes: { A: false, B: 0, C: 7, RATE_LIMITED: false, INVALID_INPUT: false, TIMEOUT: 1 } }],
    [{ delaySeconds: [1, 0.5, 3_600] }],
    [{ delaySeconds: () => 1 }],
  ])('but not %j', (policy) => {
    expect(() => checkRetryPolicy('parse', policy)).not.toThrow();
  });
});
