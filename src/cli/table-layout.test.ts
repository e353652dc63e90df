import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gap, layOut, type Column } from './table-layout.js';

const columns: readonly Column[] = [
  { title: 'task' },
  { title: 'type', least: 8 },
  { title: 'priority', spare: 2 },
  { title: 'attempt', align: 'right', spare: 1 },
  { title: 'error', least: 5, spare: 3 },
];
const row = ['01a1ee02-8887-7e85-afcb-a972da765beb', 'summarize-long', 'medium', '1', 'HTTP_500'];

function shownAt(maxWidth: number, rows = [row]): string[] {
  return layOut(columns, rows, maxWidth).map(
    ({ index, width }) => `${columns[index]?.title ?? ''} ${width}`,
  );
}

describe('layOut', () => {
  it('shows everything where there is room', () => {
    expect(shownAt(Infinity)).toEqual(['task 36', 'type 14', 'priority 8', 'attempt 7', 'error 8']);
  });

  it('cuts, then leaves out what may be left out, one after the other', () => {
    expect(shownAt(80)).toEqual(['task 36', 'type 14', 'priority 8', 'attempt 7', 'error 7']);
    expect(shownAt(70)).toEqual(['task 36', 'type 14', 'priority 8', 'error 6']);
    expect(shownAt(50)).toEqual(['task 36', 'type 12']);
    expect(shownAt(10)).toEqual(['task 36', 'type 8']);
  });

  it('leaves out first what is empty in all rows', () => {
    expect(shownAt(75, [[...row.slice(0, 4), '']])).toEqual([
      'task 36',
      'type 14',
      'priority 8',
      'attempt 7',
    ]);
  });

  it('counts what is seen, not what colors it', () => {
    expect(layOut([{ title: 'a' }], [['\u001B[33mabc\u001B[39m']], 80)).toEqual([
      { index: 0, width: 3 },
    ]);
  });

  it('never passes the last column while anything can be cut or left out', () => {
    const column = fc.record({
      title: fc.string({ maxLength: 12 }),
      least: fc.integer({ min: 1, max: 12 }),
      spare: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(
        fc.array(column, { minLength: 1, maxLength: 9 }),
        fc.nat(200),
        (all, maxWidth) => {
          const stays: Column = { title: 'id', least: 2 };
          const cells = [stays, ...all].map(({ title }) => title.repeat(3));
          const shown = layOut([stays, ...all], [cells], maxWidth);
          const width = shown.reduce((sum, one) => sum + one.width + gap, -gap);
          expect(width).toBeLessThanOrEqual(Math.max(maxWidth, 2));
        },
      ),
    );
  });
});
