import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IndexedHeap, type Placed } from './indexed-heap.js';

interface Item extends Placed {
  key: number;
}

const isBefore = (a: Item, b: Item) => a.key < b.key;
const itemOf = (key: number): Item => ({ place: -1, key });
const keysOf = (items: readonly Item[]) => items.map(({ key }) => key).sort((a, b) => a - b);

function drain(heap: IndexedHeap<Item>): number[] {
  const keys = [];
  for (let item = heap.pop(); item !== undefined; item = heap.pop()) keys.push(item.key);
  return keys;
}

const change = fc.oneof(
  fc.record({ kind: fc.constant('push' as const), key: fc.nat(50) }),
  fc.record({ kind: fc.constant('pop' as const) }),
  fc.record({ kind: fc.constant('update' as const), which: fc.nat(), key: fc.nat(50) }),
  fc.record({ kind: fc.constant('remove' as const), which: fc.nat() }),
);

describe('IndexedHeap', () => {
  it('keeps the smallest at the top and every place right, whatever happens to it', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 100 }), (changes) => {
        const heap = new IndexedHeap(isBefore);
        const held: Item[] = [];
        for (const step of changes) {
          const at = 'which' in step ? step.which % Math.max(1, held.length) : 0;
          const item = held[at];
          if (step.kind === 'push') {
            const pushed = itemOf(step.key);
            held.push(pushed);
            heap.push(pushed);
          } else if (step.kind === 'pop') {
            const popped = heap.pop();
            expect(popped?.key).toBe(keysOf(held)[0]);
            if (popped === undefined) continue;
            expect(popped.place).toBe(-1);
            held.splice(held.indexOf(popped), 1);
          } else if (item !== undefined && step.kind === 'update') {
            item.key = step.key;
            heap.update(item);
          } else if (item !== undefined) {
            heap.remove(item);
            expect(item.place).toBe(-1);
            held.splice(at, 1);
          }
          expect(heap.size).toBe(held.length);
          expect(heap.peek()?.key).toBe(keysOf(held)[0]);
          expect(new Set(held.map(({ place }) => place)).size).toBe(held.length);
        }
        expect(drain(heap)).toEqual(keysOf(held));
      }),
    );
  });

  it('counts those before a key by looking at them and their children only', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50)), fc.nat(60), fc.nat(40), (keys, bound, limit) => {
        const heap = new IndexedHeap(isBefore);
        for (const key of keys) heap.push(itemOf(key));
        let looks = 0;
        const count = heap.countFirst((item) => {
          looks += 1;
          return item.key < bound;
        }, limit);
        expect(count).toBe(Math.min(limit, keys.filter((key) => key < bound).length));
        expect(looks).toBeLessThanOrEqual(2 * count + 1);
      }),
    );
  });

  it('compares a few times the depth for each change, among 100,000', () => {
    let comparisons = 0;
    const heap = new IndexedHeap<Item>((a, b) => {
      comparisons += 1;
      return a.key < b.key;
    });
    const items = Array.from({ length: 100_000 }, (_, index) => itemOf((index * 7919) % 100_003));
    const most = (act: (item: Item) => void, among: readonly Item[]) =>
      among.reduce((worst, item) => {
        comparisons = 0;
        act(item);
        return Math.max(worst, comparisons);
      }, 0);
    const bound = 2 * Math.ceil(Math.log2(items.length)) + 1;
    const sample = items.filter((_, index) => index % 100 === 0);
    expect(most((item) => heap.push(item), items)).toBeLessThanOrEqual(bound);
    const shuffled = (item: Item) => {
      item.key = (item.key * 31) % 100_003;
      heap.update(item);
    };
    expect(most(shuffled, sample)).toBeLessThanOrEqual(bound);
    expect(most((item) => heap.remove(item), sample)).toBeLessThanOrEqual(bound);
    expect(most(() => heap.pop(), sample)).toBeLessThanOrEqual(bound);
  });
});
