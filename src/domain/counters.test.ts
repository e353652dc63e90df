import { expect, it } from 'vitest';
import {
  counterLength,
  counterPositions,
  countOf,
  runPosition,
  runQuantile,
  waitPosition,
  waitQuantile,
} from './counters.js';

it('every counter and every bucket has a position of its own', () => {
  const seconds = [0.05, 0.2, 0.7, 2, 10, 30, 100, 400, 1_000, 2_000, 9_999];
  const waits = (['high', 'medium', 'low'] as const).flatMap((priority) =>
    seconds.map((each) => waitPosition(priority, each * 1000)),
  );
  const runs = [0.05, 0.2, 0.7, 2, 4, 7, 20, 40, 100, 400, 9_999].map((each) =>
    runPosition(each * 1000),
  );
  const all = [...Object.values(counterPositions), ...waits, ...runs];
  expect(all.toSorted((a, b) => a - b)).toEqual(Array.from({ length: counterLength }, (_, n) => n));
});

it('a quantile lies inside the bucket that it falls into', () => {
  const counts = new Float64Array(counterLength);
  for (let n = 0; n < 90; n++) add(waitPosition('low', 300));
  for (let n = 0; n < 10; n++) add(waitPosition('high', 2_000));
  expect(waitQuantile(counts, 0.5)).toBeGreaterThan(0.1);
  expect(waitQuantile(counts, 0.5)).toBeLessThan(0.5);
  expect(waitQuantile(counts, 0.95)).toBe(3);
  expect(waitQuantile(counts, 0.5, 'high')).toBe(3);
  expect(waitQuantile(counts, 0.5, 'medium')).toBeNull();
  expect(runQuantile(counts, 0.5)).toBeNull();
  add(runPosition(10_000_000));
  expect(runQuantile(counts, 0.5)).toBe(900);

  function add(position: number): void {
    counts[position] = (counts[position] ?? 0) + 1;
  }
});

it('a row of an earlier version that is shorter counts nothing of what came later', () => {
  expect(countOf([3, 2], 'started')).toBe(2);
  expect(countOf([3, 2], 'tokens_used')).toBe(0);
});
