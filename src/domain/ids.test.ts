import fc from 'fast-check';
import { V7Generator } from 'uuidv7';
import { describe, expect, it } from 'vitest';
import { firstIdAt, isUuid, IdSource } from './ids.js';

const startMs = Date.UTC(2030, 0, 1);
const instant = fc.integer({ min: 1, max: 2 ** 47 });

describe('task ids', () => {
  it('ascend within one millisecond, also when there are more than one counter holds', () => {
    const source = new IdSource();
    const ids = Array.from({ length: 10_000 }, () => source.nextTaskId(startMs));
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('ascend while the clock goes on, or back by up to ten seconds', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -9900, max: 100 })), (steps) => {
        const source = new IdSource();
        const ids = [
          source.nextTaskId(startMs),
          ...steps.map((step) => source.nextTaskId(startMs + step)),
        ];
        expect(ids).toEqual([...ids].sort());
        expect(new Set(ids).size).toBe(ids.length);
      }),
    );
  });

  it('follow a clock that was an hour ahead and is right again', () => {
    const source = new IdSource();
    source.nextTaskId(startMs + 3_600_000);
    const id = source.nextTaskId(startMs);
    expect(id < firstIdAt(startMs + 1)).toBe(true);
  });

  it('take the millisecond that an instant falls in', () => {
    const id = new IdSource().nextTaskId(startMs + 0.9);
    expect(id < firstIdAt(startMs + 1)).toBe(true);
  });

  it('are written as the library writes them', () => {
    const numbers = () => {
      let state = 7;
      return { nextUint32: () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) };
    };
    const [source, library] = [new IdSource(numbers()), new V7Generator(numbers())];
    for (let n = 0; n < 1_000; n += 1) {
      const instantMs = startMs + n * 977;
      const expected = library.generateOrResetWithTs(instantMs).toString();
      expect(source.nextTaskId(instantMs)).toBe(expected);
    }
  });

  it('lie between the first of their instant and the first of the next', () => {
    fc.assert(
      fc.property(instant, (instantMs) => {
        const id = new IdSource().nextTaskId(instantMs);
        expect(id >= firstIdAt(instantMs)).toBe(true);
        expect(id < firstIdAt(instantMs + 1)).toBe(true);
      }),
    );
  });
});

describe('firstIdAt', () => {
  it('orders as the instants do, and is a UUID of version 7', () => {
    fc.assert(
      fc.property(instant, instant, (a, b) => {
        expect(firstIdAt(a) < firstIdAt(b)).toBe(a < b);
        expect(isUuid(firstIdAt(a))).toBe(true);
        expect(firstIdAt(a)[14]).toBe('7');
      }),
    );
  });

  it('takes the millisecond that an instant falls in', () => {
    expect(firstIdAt(startMs + 0.9)).toBe(firstIdAt(startMs));
  });
});

describe('isUuid', () => {
  it('takes the one way Postgres writes them', () => {
    const id = new IdSource().nextTaskId(startMs);
    expect(isUuid(id)).toBe(true);
    for (const other of ['', 'x', id.toUpperCase(), `{${id}}`, `${id}\n`, id.replaceAll('-', '')]) {
      expect(isUuid(other)).toBe(false);
    }
  });
});
