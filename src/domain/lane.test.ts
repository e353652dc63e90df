import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { capabilitySet, laneKey, routingGroupKey } from './lane.js';

const name = fc.stringMatching(/^[A-Za-z0-9._:/-]{1,8}$/);
const lane = fc.record({
  queue: name,
  taskType: name,
  capabilities: fc.array(name, { maxLength: 3 }).map(capabilitySet),
});

const severalTwice = fc.uniqueArray(name).chain((names) => {
  const twice = [...names, ...names];
  const shuffled = fc.shuffledSubarray(twice, { minLength: twice.length });
  return fc.record({ names: fc.constant(names), shuffled });
});

describe('capabilitySet', () => {
  it('R-CH3: is the same for the same capabilities, however they are listed', () => {
    fc.assert(
      fc.property(severalTwice, ({ names, shuffled }) => {
        expect(capabilitySet(shuffled)).toEqual(capabilitySet(names));
        expect(new Set(capabilitySet(names))).toEqual(new Set(names));
      }),
    );
  });
});

describe('laneKey', () => {
  it('R-CH3: is the same text for the same lane and for no other', () => {
    fc.assert(
      fc.property(lane, lane, (a, b) => {
        const same = JSON.stringify(a) === JSON.stringify(b);
        expect(laneKey(a) === laneKey(b)).toBe(same);
        expect(laneKey({ ...a, capabilities: [...a.capabilities] })).toBe(laneKey(a));
      }),
    );
  });

  it('R-CH3: lanes of one routing group differ by their queue alone', () => {
    fc.assert(
      fc.property(lane, name, (one, queue) => {
        expect(routingGroupKey({ ...one })).toBe(routingGroupKey(one));
        expect(laneKey({ ...one, queue }) === laneKey(one)).toBe(queue === one.queue);
      }),
    );
  });

  it('R-CH3: a type and a capability of the same name are not confused', () => {
    const keys = [
      { queue: 'a', taskType: 'b', capabilities: [] },
      { queue: 'a', taskType: 'b', capabilities: ['c'] },
      { queue: 'a', taskType: 'b', capabilities: ['c', 'd'] },
      { queue: 'a', taskType: 'b', capabilities: ['cd'] },
      { queue: 'ab', taskType: 'b', capabilities: ['c'] },
    ].map(laneKey);
    expect(new Set(keys).size).toBe(keys.length);
  });
});
