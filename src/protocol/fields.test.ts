import { describe, expect, it } from 'vitest';
import { SluiceError } from '../domain/errors.js';
import { callersError, writeRequest } from './fields.js';
import { invalidRequest } from './problem-wire.js';
import { queueFields } from './queues-wire.js';
import { draftFields } from './tasks-wire.js';

function refusalOf(given: unknown): readonly (readonly [string, string])[] {
  try {
    writeRequest(queueFields, given);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return (error.errors ?? []).map(({ path, message }) => [path, message] as const);
  }
  return [];
}

describe('writeRequest', () => {
  it.each([
    [{ max_concurrency: 5 }, '/max_concurrency', 'maxConcurrency'],
    [{ maxConcurency: 5 }, '/maxConcurency', 'maxConcurrency'],
    [{ limits: [{ unit: 'a', rate: 1, per_seconds: 1 }] }, '/limits/0/per_seconds', 'perSeconds'],
    [{ limits: { RPM: 5 } }, '/limits/RPM', 'rpm'],
    [{ ageing: { lowToHigh: 5 } }, '/ageing/lowToHigh', 'lowToHighMs'],
  ])('%j: %s, did you mean %s', (given, path, meant) => {
    expect(refusalOf(given)).toEqual([[path, `is not a known field: did you mean "${meant}"?`]]);
  });

  it('names everything that is unknown, also what every object has', () => {
    expect(refusalOf({ colour: 1, toString: 2, 'a/b': 3 })).toEqual([
      ['/colour', 'is not a known field'],
      ['/toString', 'is not a known field'],
      ['/a~1b', 'is not a known field'],
    ]);
  });

  it('leaves values to the schema, and says nothing of what is undefined', () => {
    const odd = { limits: 'none', maxReady: '5', paused: undefined, pausedUntil: 'tomorrow' };
    expect(writeRequest(queueFields, odd)).toEqual({
      limits: 'none',
      max_ready: '5',
      paused_until: 'tomorrow',
    });
    expect(writeRequest(queueFields, { pausedUntil: new Date(NaN) })).toEqual({
      paused_until: 'Invalid Date',
    });
    expect(writeRequest(queueFields, 'all')).toBe('all');
  });

  it.each([NaN, Infinity, 5n, Symbol('5'), () => 5])('does not let JSON change %s', (odd) => {
    const limits = [{ unit: 'a', rate: odd, perSeconds: 1 }];
    const wire = writeRequest(queueFields, {
      maxActive: odd,
      ageing: { lowToHighMs: odd },
      limits,
    });
    expect(JSON.parse(JSON.stringify(wire))).toEqual({
      max_active: [null],
      ageing: { low_to_high_seconds: [null] },
      limits: [{ unit: 'a', rate: [null], per_seconds: 1 }],
    });
  });
});

describe('callersError', () => {
  const renamed = (path: string) =>
    callersError(queueFields, invalidRequest([{ path, message: 'is wrong' }]));

  it.each([
    ['/max_concurrency', '/maxConcurrency'],
    ['/limits/3/per_seconds', '/limits/3/perSeconds'],
    ['/limits/3', '/limits/3'],
    ['/limits/rpm', '/limits/rpm'],
    ['/ageing/low_to_high_seconds', '/ageing/lowToHighMs'],
    ['/elsewhere/per_seconds', '/elsewhere/per_seconds'],
    ['', ''],
  ])('%s is %s', (path, expected) => {
    expect(renamed(path)).toMatchObject({
      code: 'invalid_request',
      errors: [{ path: expected, message: 'is wrong' }],
    });
  });

  it("leaves the caller's own names alone, and says the detail in the new ones", () => {
    const error = invalidRequest([
      { path: '/cost/max_retries', message: 'must be >= 0' },
      { path: '/max_retries', message: 'must be >= 0' },
    ]);
    expect(callersError(draftFields, error)).toMatchObject({
      message: '/cost/max_retries must be >= 0; /maxRetries must be >= 0',
    });
  });

  it('keeps a detail that is a sentence of its own', () => {
    const errors = [{ path: '/max_retries', message: 'm' }];
    const error = new SluiceError('refused', 'Come back later.', { errors, retryAfterSeconds: 3 });
    expect(callersError(draftFields, error)).toMatchObject({
      code: 'refused',
      message: 'Come back later.',
      retryAfterSeconds: 3,
    });
    expect(callersError(draftFields, 'what else')).toBe('what else');
  });
});
