import { describe, expect, it } from 'vitest';
import { errorCatalogue } from './error-catalogue.js';
import { SluiceError, type ErrorCode } from './errors.js';

const codes = Object.keys(errorCatalogue) as ErrorCode[];

describe('the error catalogue', () => {
  it('names every code in snake_case, with a status of refusal and a title of its own', () => {
    for (const code of codes) {
      const { status, title } = errorCatalogue[code];
      expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(600);
      expect(title).toMatch(/^[A-Z].*[^.]$/);
    }
    expect(new Set(Object.values(errorCatalogue).map(({ title }) => title)).size).toBe(
      codes.length,
    );
  });

  it('R-AD7: blames only outages and bugs on the server', () => {
    const ours = codes.filter((code) => errorCatalogue[code].status >= 500);
    expect(ours.sort()).toEqual(['internal', 'unavailable']);
  });
});

describe('SluiceError', () => {
  it('has the status of its code', () => {
    for (const code of codes) {
      expect(new SluiceError(code, 'why').status).toBe(errorCatalogue[code].status);
    }
  });

  it('carries what was said, and null for what was not', () => {
    const bare = new SluiceError('task_not_found', 'no task has this id');
    expect(bare).toMatchObject({
      name: 'SluiceError',
      code: 'task_not_found',
      message: 'no task has this id',
      errors: null,
      retryAfterSeconds: null,
    });
    expect('cause' in bare).toBe(false);
    const cause = new Error('connection reset');
    const errors = [{ path: '/queue', message: 'is too long' }];
    const full = new SluiceError('unavailable', 'later', { cause, errors, retryAfterSeconds: 3 });
    expect(full).toMatchObject({ cause, errors, retryAfterSeconds: 3 });
  });
});
