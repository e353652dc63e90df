import { expect, it } from 'vitest';
import { eachInTurns } from './turns.js';

it('R-HA4: others get their turn while each of very many is done, in order', async () => {
  const done: number[] = [];
  let turnsOfOthers = 0;
  const timer = setInterval(() => {
    turnsOfOthers += 1;
  });
  const numbers = Array.from({ length: 1_000 }, (_, n) => n);
  await eachInTurns(numbers, (n) => {
    done.push(n);
    const beganMs = performance.now();
    while (performance.now() < beganMs + 0.2);
  });
  clearInterval(timer);
  expect(done).toEqual(numbers);
  // 200 ms of work, in turns of 10 ms and at most one step more.
  expect(turnsOfOthers).toBeGreaterThan(2);
});
