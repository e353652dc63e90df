import { expect, it } from 'vitest';

import { mostAtOnce, orderOf, runAgain, sharesOf, type Note } from '../../lab/workers/run-log.js';

const note = (what: Note['what'], taskId: string, at: number, worker = 'a', attempt = 1): Note => ({
  what,
  taskId,
  attempt,
  worker,
  at,
});

it('finds two at once, and takes what a killed worker ran for ended', () => {
  const killed = [
    note('began', 'x', 0),
    note('began', 'x', 20, 'b', 2),
    note('ended', 'x', 30, 'b', 2),
  ];
  expect(mostAtOnce(killed)).toBe(2);
  expect(mostAtOnce(killed, new Map([['a', 21]]))).toBe(2);
  expect(mostAtOnce(killed, new Map([['a', 20]]))).toBe(1);
});

it('finds what began out of order, but not what was tried again', () => {
  const tried = [note('began', 'x', 0), note('began', 'x', 1, 'b', 2), note('began', 'y', 2)];
  expect(orderOf(tried)).toEqual(['x', 'y']);
  expect(orderOf([...tried, note('began', 'x', 3, 'b', 3)])).toEqual(['x', 'y', 'x']);
});

it('finds what ran again after it had ended, and only that', () => {
  const stopped = [note('began', 'x', 0), note('stopped', 'x', 1), note('began', 'x', 2, 'b', 2)];
  expect(runAgain(stopped)).toEqual([]);
  const ended = [note('began', 'y', 0), note('ended', 'y', 1), note('began', 'y', 2, 'b', 2)];
  expect(runAgain([...stopped, ...ended])).toEqual(['y']);
});

it('counts what each worker ended', () => {
  const notes = [note('began', 'x', 0), note('ended', 'x', 1), note('ended', 'y', 1, 'b')];
  expect(sharesOf(notes)).toEqual(
    new Map([
      ['a', 1],
      ['b', 1],
    ]),
  );
});
