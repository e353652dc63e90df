import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Batcher, type FlushFailure } from './batcher.js';

function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe('Batcher', () => {
  it('gathers what comes while a flush is under way', async () => {
    const first = gate();
    const batches: number[][] = [];
    const batcher = new Batcher<number, number>({
      maxItems: 100,
      flush: async (items) => {
        batches.push([...items]);
        if (batches.length === 1) await first.opened;
        return items.map((item) => item * 10);
      },
    });
    const lone = batcher.add(1);
    await Promise.resolve();
    const gathered = [2, 3, 4].map((item) => batcher.add(item));
    first.open();
    expect(await Promise.all([lone, ...gathered])).toEqual([10, 20, 30, 40]);
    expect(batches).toEqual([[1], [2, 3, 4]]);
  });

  it('puts calls made together into one batch, in order, up to the most it may hold', async () => {
    const batches: number[][] = [];
    const batcher = new Batcher<number, number>({
      maxItems: 3,
      flush: (items) => {
        batches.push([...items]);
        return Promise.resolve(items);
      },
    });
    await batcher.addAll([1, 2, 3, 4, 5, 6, 7]);
    expect(batches).toEqual([[1, 2, 3], [4, 5, 6], [7]]);
  });

  it('waits for others to come along where it is told to, and not when it is full', async () => {
    const batches: number[][] = [];
    const batcher = new Batcher<number, number>({
      maxItems: 3,
      gatherMs: () => 20,
      flush: (items) => {
        batches.push([...items]);
        return Promise.resolve(items);
      },
    });
    const first = batcher.add(1);
    await Promise.resolve();
    const second = batcher.add(2);
    expect(batches).toEqual([]);
    expect(await Promise.all([first, second])).toEqual([1, 2]);
    await batcher.addAll([3, 4, 5, 6, 7]);
    expect(batches).toEqual([
      [1, 2],
      [3, 4, 5],
      [6, 7],
    ]);
  });

  it('never holds more weight than it may, but a heavy item goes alone', async () => {
    const batches: number[][] = [];
    const batcher = new Batcher<number, number>({
      maxItems: 100,
      weigh: (item) => item,
      maxWeight: 10,
      flush: (items) => {
        batches.push([...items]);
        return Promise.resolve(items);
      },
    });
    await batcher.addAll([4, 5, 6, 50, 1, 1]);
    expect(batches).toEqual([[4, 5], [6], [50], [1, 1]]);
  });

  it('fails only the callers whose items are at fault, whichever they are', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }), async (faulty) => {
        const batcher = new Batcher<number, string>({
          maxItems: 16,
          flush: (items) =>
            items.some((item) => faulty[item])
              ? Promise.reject(new Error('a bad row'))
              : Promise.resolve(items.map(String)),
        });
        const outcomes = await Promise.allSettled(faulty.map((_, item) => batcher.add(item)));
        expect(outcomes.map(({ status }) => status)).toEqual(
          faulty.map((isFaulty) => (isFaulty ? 'rejected' : 'fulfilled')),
        );
      }),
    );
  });

  it('lets a locked item try again by itself while others pass it', async () => {
    let isLocked = true;
    const judge = (): FlushFailure => 'locked';
    const batcher = new Batcher<string, string>({
      maxItems: 10,
      judge,
      flush: (items) =>
        isLocked && items.includes('locked')
          ? Promise.reject(new Error('row is locked'))
          : Promise.resolve(items),
    });
    const locked = batcher.add('locked');
    expect(await batcher.add('free')).toBe('free');
    isLocked = false;
    expect(await locked).toBe('locked');
  });

  it('R-HA2: gives up what stays locked in time, however large the batch is', async () => {
    let underWay = 0;
    let mostAtOnce = 0;
    const batcher = new Batcher<number, number>({
      maxItems: 1_000,
      judge: () => 'locked',
      groupOf: (item) => (item % 2 === 0 ? `g${item % 20}` : null),
      // As a statement that waits for a lock until it may not wait any longer.
      flush: async () => {
        underWay += 1;
        mostAtOnce = Math.max(mostAtOnce, underWay);
        await new Promise((resolve) => setTimeout(resolve, 200));
        underWay -= 1;
        throw new Error('the table is locked');
      },
    });
    const beganMs = performance.now();
    const times = Array.from({ length: 300 }, async (_, item) => {
      await new Promise((resolve) => setTimeout(resolve, item < 200 ? 0 : 500));
      await expect(batcher.add(item)).rejects.toThrow('the table is locked');
      return performance.now() - beganMs;
    });
    expect(Math.max(...(await Promise.all(times)))).toBeLessThan(5_000);
    expect(mostAtOnce).toBeLessThanOrEqual(3);
  });

  it('R-WO2: keeps the order of a locked group, and tries it again as one', async () => {
    let isLocked = true;
    const flushes: string[][] = [];
    const written: string[] = [];
    const batcher = new Batcher<string, string>({
      maxItems: 4,
      judge: () => 'locked',
      groupOf: (item) => (item.startsWith('g') ? 'g' : null),
      flush: (items) => {
        flushes.push([...items]);
        const isHeld = isLocked && items.some((item) => item.startsWith('g'));
        if (isHeld) return Promise.reject(new Error('row is locked'));
        written.push(...items);
        return Promise.resolve(items);
      },
    });
    const group = batcher.addAll(['g1', 'a', 'g2', 'b', 'g3', 'c', 'g4', 'g5']);
    expect(await batcher.add('d')).toBe('d');
    expect(written).toEqual(['a', 'b', 'c', 'd']);
    // Whatever is locked was tried with the others once, and from then on as one.
    expect(flushes.filter((items) => items.every((item) => item.startsWith('g')))).toEqual([
      ['g1', 'g2'],
    ]);
    isLocked = false;
    await group;
    expect(written.slice(4)).toEqual(['g1', 'g2', 'g3', 'g4', 'g5']);
  });

  it('R-WO2: a culprit in a locked group fails alone; the others keep their order', async () => {
    let isLocked = true;
    const written: string[] = [];
    const batcher = new Batcher<string, string>({
      maxItems: 10,
      judge: (error) => (String(error).includes('locked') ? 'locked' : 'culprit'),
      groupOf: () => 'g',
      flush: (items) => {
        if (isLocked) return Promise.reject(new Error('row is locked'));
        if (items.includes('bad')) return Promise.reject(new Error('a bad row'));
        written.push(...items);
        return Promise.resolve(items);
      },
    });
    const added = ['1', '2', 'bad', '3', '4'].map((item) => batcher.add(item));
    await Promise.resolve();
    isLocked = false;
    const outcomes = await Promise.allSettled(added);
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual([
      ...[true, true, false],
      ...[true, true],
    ]);
    expect(written).toEqual(['1', '2', '3', '4']);
  });

  it('rejects all at once when nothing can be written, without trying one by one', async () => {
    let flushes = 0;
    const batcher = new Batcher<number, number>({
      maxItems: 10,
      judge: () => 'outage',
      flush: () => {
        flushes += 1;
        return Promise.reject(new Error('away'));
      },
    });
    const outcomes = await Promise.allSettled([1, 2, 3].map((item) => batcher.add(item)));
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
    expect(flushes).toBe(1);
  });
});
