import { expect, it } from 'vitest';
import { eachGivingWay } from './giving-way.js';

it('R-HA4: whatever else waits gets its turn after each thousand, and all are done in order', async () => {
  const done: number[] = [];
  const doneAtTurns: number[] = [];
  const numbers = Array.from({ length: 3_500 }, (_, n) => n);
  const all = eachGivingWay(numbers, (n) => done.push(n));
  let isOver = false;
  const look = () => {
    doneAtTurns.push(done.length);
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await all;
  isOver = true;
  expect(done).toEqual(numbers);
  // The first turn may come before or after the others of the same round.
  expect(doneAtTurns).toEqual(expect.arrayContaining([2_000, 3_000]));
});
