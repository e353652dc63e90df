import { expect, it } from 'vitest';
import { lostTimeOf, lostTimeWords } from './lost-time.js';

/** Four minutes. */
function course(values: Readonly<Record<string, readonly number[]>>) {
  const mean = (metric: string) => (values[metric] ?? [0, 0, 0, 0]).map((ms) => ms / 60_000);
  return { times: [0, 60, 120, 180], mean };
}

it('R-AD6: says what kept tasks from starting, the worst first', () => {
  const lost = lostTimeOf(
    course({
      held_rate_limit_ms: [15_000, 0, 0, 0],
      no_worker_ms: [0, 60_000, 60_000, 0],
      held_circuit_open_ms: [0, 0, 0, 15_000],
      held_circuit_half_open_ms: [0, 0, 0, 15_000],
    }),
  );
  expect(lost.map(({ label, values }) => [label, ...values])).toEqual([
    ['rate limit', 0.25, 0, 0, 0],
    ['no free worker', 0, 1, 1, 0],
    ['circuit', 0, 0, 0, 0.5],
  ]);
  expect(lostTimeWords(lost, 'hour')).toBe(
    'Tasks were ready and none could start for 68.8 % of the last hour: no free worker 50 %, circuit 12.5 %, rate limit 6.25 %.',
  );
});

it('R-AD6: says that nothing was lost', () => {
  expect(lostTimeWords(lostTimeOf(course({})), 'day')).toBe(
    'Whenever tasks were ready over the last day, they could start.',
  );
});
