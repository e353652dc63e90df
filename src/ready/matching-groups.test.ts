import { expect, it } from 'vitest';
import { MatchingGroups } from './matching-groups.js';

const group = (taskType: string) => ({ taskType, capabilities: [] });

it('R-AD7: filters are remembered by what they take, however long they are', () => {
  const matching = new MatchingGroups([group('a')]);
  const long = 'x'.repeat(2_000_000);
  let most = 0;
  for (let n = 0; n < 6; n += 1) {
    const found = matching.of({ taskTypes: ['a', `${n}${long}`], capabilities: [] });
    expect(found).toHaveLength(1);
    most = Math.max(most, matching.remembered);
  }
  // 4 MB each, of 16 in all.
  expect(most).toBe(4);
});

it('R-AD7: filters are remembered up to a number, however short they are', () => {
  const matching = new MatchingGroups([group('a')]);
  for (let n = 0; n < 2_500; n += 1) matching.of({ taskTypes: [`t${n}`], capabilities: [] });
  expect(matching.remembered).toBe(500);
});

it('a filter is looked for once, until a group came or went', () => {
  let looks = 0;
  const groups = [group('a'), group('b')];
  const matching = new MatchingGroups({
    [Symbol.iterator]: () => {
      looks += 1;
      return groups.values();
    },
  });
  const filter = { taskTypes: ['b'], capabilities: [] };
  expect(matching.of(filter)).toEqual([group('b')]);
  expect(matching.of(filter)).toEqual([group('b')]);
  expect(looks).toBe(1);
  matching.changed();
  matching.of(filter);
  expect(looks).toBe(2);
});
