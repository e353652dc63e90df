import { expect, it } from 'vitest';
import { createLog, loggedError } from './log.js';

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

it('R-HA2: an outage is one line a second without a stack, whatever fails; the next says how many were left out', () => {
  const lines: { readonly left_out?: number }[] = [];
  const log = createLog('info', { write: (text) => void lines.push(JSON.parse(text) as object) });
  const cause = Object.assign(new Error('Postgres is away'), { isOutage: true });
  const beganMs = performance.now();
  while (lines.length < 2) {
    log
      .child({})
      .warn({ err: new Error('a call failed', { cause }) }, 'a call could not be served');
    log.error({ err: cause }, 'a tick failed');
  }
  expect(performance.now() - beganMs).toBeGreaterThanOrEqual(1_000);
  expect(lines[0]).not.toHaveProperty('left_out');
  expect(lines[1]?.left_out).toBeGreaterThan(100);
  expect(JSON.stringify(lines)).not.toContain('stack');
  log.error({ err: new Error('a bug') }, 'something else');
  log.info('and more');
  expect(lines).toHaveLength(4);
  expect(lines[2]).toMatchObject({ err: { stack: expect.any(String) as string } });
});
