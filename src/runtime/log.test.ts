import { expect, it } from 'vitest';
import { loggedError } from './log.js';

it('R-AD6: of an error only what its author wrote is logged, and of its causes', () => {
  const command = { name: 'auth', args: ['user', 'hunter2'] };
  const cause = Object.assign(new Error('WRONGPASS'), { command, code: 'WRONGPASS' });
  const error = Object.assign(new Error('away', { cause }), { detail: 'hunter2', config: command });
  const logged = loggedError(error);
  expect(logged).toMatchObject({
    type: 'Error',
    message: 'away',
    cause: {
      message: 'WRONGPASS',
      code: 'WRONGPASS',
      stack: expect.stringContaining('log.test') as string,
    },
  });
  expect(JSON.stringify(logged)).not.toContain('hunter2');
  expect(loggedError('hunter2')).toEqual({ type: 'string' });
});

it('ends with causes that go round', () => {
  const error = new Error('round');
  error.cause = error;
  expect(JSON.stringify(loggedError(error)).match(/"message":"round"/g)).toHaveLength(6);
});
