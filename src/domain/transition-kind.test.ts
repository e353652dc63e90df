import { expect, it } from 'vitest';
import { transitions } from './task-state.js';
import { isProblem, transitionText, type Moved } from './transition-kind.js';

it('R-OB8: every transition has a name; of those without an outcome only ends without success are problems', () => {
  for (const { from, to } of transitions) {
    const isBadEnd = to === 'dead_letter' || to === 'failed' || to === 'cancelled';
    expect({ from, to, is: isProblem({ from, to }) }).toEqual({ from, to, is: isBadEnd });
    expect(transitionText({ from, to })).toMatch(/^task [a-z ,]+$/);
  }
});

const back = { from: 'executing', to: 'pending' } as const;

it.each<[Moved, string, boolean]>([
  [{ ...back, outcome: 'failed', errorCode: 'HTTP_500' }, 'task retried', true],
  [{ ...back, outcome: 'deferred', errorCode: 'RATE_LIMITED' }, 'task deferred', true],
  [{ ...back, outcome: 'lapsed', errorCode: 'WORKER_LOST' }, 'lease lapsed, task retried', true],
  [
    { ...back, outcome: 'timed_out', errorCode: 'TIMEOUT' },
    'attempt timed out, task retried',
    true,
  ],
  [{ ...back, outcome: 'released' }, 'task released', false],
  [
    { from: 'assigned', to: 'pending', outcome: 'released', errorCode: 'NEVER_STARTED' },
    'task was never started, and returned',
    true,
  ],
  [{ from: 'dead_letter', to: 'pending' }, 'task replayed', false],
  [{ from: 'queued', to: 'pending' }, 'task rescheduled', false],
  [{ from: 'executing', to: null, outcome: 'failed' }, 'attempt failed', true],
])('R-OB8: %o is called "%s", a problem: %s', (moved, text, isWrong) => {
  expect(transitionText(moved)).toBe(text);
  expect(isProblem(moved)).toBe(isWrong);
});
