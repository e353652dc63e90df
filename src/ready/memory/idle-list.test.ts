import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IdleList, type Listed } from './idle-list.js';

interface Item extends Listed<Item> {
  readonly name: number;
}

function makeItems(count: number): Item[] {
  return Array.from({ length: count }, (_, name) => ({ name, idleBefore: null, idleAfter: null }));
}

describe('IdleList', () => {
  it('forgets what has been idle longest, as a list of names would', () => {
    const operation = fc.record({ adds: fc.boolean(), name: fc.nat(9) });
    fc.assert(
      fc.property(
        fc.array(operation, { maxLength: 100 }),
        fc.integer({ min: 1, max: 6 }),
        (operations, limit) => {
          const items = makeItems(10);
          const forgotten: number[] = [];
          const idle = new IdleList<Item>(limit, ({ name }) => forgotten.push(name));
          let expected: number[] = [];
          const expectedForgotten: number[] = [];
          for (const { adds, name } of operations) {
            const item = items[name];
            if (item === undefined) throw new Error('no such item');
            expected = expected.filter((one) => one !== name);
            if (adds) expected.push(name);
            if (adds) idle.add(item);
            else idle.delete(item);
            if (expected.length > limit) expectedForgotten.push(...expected.splice(0, 1));
            expect(forgotten).toEqual(expectedForgotten);
          }
        },
      ),
    );
  });

  it('may be taken from while it forgets', () => {
    const items = makeItems(4);
    const forgotten: number[] = [];
    const idle: IdleList<Item> = new IdleList<Item>(2, ({ name }) => {
      forgotten.push(name);
      const next = items[name + 1];
      if (next !== undefined) idle.delete(next);
    });
    for (const item of items) idle.add(item);
    expect(forgotten).toEqual([0]);
  });
});
