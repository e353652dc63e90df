import { describe, expect, it } from 'vitest';

import type { TaskId } from '../domain/ids.js';
import { encodeCursor } from '../store/paging.js';
import { decodeReplayCursor, encodeReplayCursor } from './replay-cursor.js';

const after = '01a1e2e6-a596-742c-9a97-13a4b572f49b' as TaskId;

describe('the cursor of a replay', () => {
  it('R-RE5: comes back as it was', () => {
    const cursor = { after, dueMs: 1_790_000_000_000 };
    expect(decodeReplayCursor(encodeReplayCursor(cursor))).toEqual(cursor);
  });

  it.each([after, `${after} `, `${after} -1`, `${after} 1e9`, `${after} 99999999999999`, 'x 1'])(
    'R-AD7: one that nobody was given is refused: %s',
    (text) => {
      expect(() => decodeReplayCursor(encodeCursor(text))).toThrow(/cursor/);
    },
  );
});
