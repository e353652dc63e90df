import { expect, it } from 'vitest';
import { MatchingGroups } from './matching-groups.js';

const group = (taskType: string) => ({ key: taskType, taskType, capabilities: [] });

function matchingOne() {
  const matching = new MatchingGroups<ReturnType<typeof group>>();
  matching.add(group('a'));
  return matching;
}

it('R-AD7: filters are remembered by what they take, however long they are', () => {
  const matching = matchingOne();
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
  const matching = matchingOne();
  for (let n = 0; n < 2_500; n += 1) matching.of({ taskTypes: [`t${n}`], capabilities: [] });
  expect(matching.remembered).toBe(500);
});

it('a filter is looked for once, until a group of one of its types came or went', () => {
  const matching = new MatchingGroups<ReturnType<typeof group>>();
  const [a, b] = [group('a'), group('b')];
  matching.add(a);
  matching.add(b);
  const filter = { taskTypes: ['b'], capabilities: [] };
  const found = matching.of(filter);
  expect(found).toEqual([b]);
  expect(matching.of(filter)).toBe(found);
  matching.add(group('c'));
  matching.delete(a);
  expect(matching.of(filter)).toBe(found);
  matching.delete(b);
  expect(matching.of(filter)).toEqual([]);
});

it('R-HA3: a worker for every type is answered with one group for each capability set', () => {
  const matching = new MatchingGroups<ReturnType<typeof group>>();
  for (let n = 0; n < 1_000; n += 1) matching.add(group(`t${n}`));
  matching.add(group('*'));
  expect(matching.of({ taskTypes: null, capabilities: [] })).toEqual([group('*')]);
});
