import { expect, it } from 'vitest';
import { heapBytes } from '../../test/support/heap-bytes.js';
import type { WorkerId } from '../domain/ids.js';
import { TrackRecord } from './track-record.js';

const workers = ['a', 'b', 'c', 'd', 'e'] as WorkerId[];

it('R-LA3: a kind that four workers do well takes less than 350 bytes of the heap', () => {
  const record = new TrackRecord();
  const before = heapBytes();
  for (const [nowMs, workerId] of workers.entries()) {
    for (let n = 0; n < 10_000; n += 1) record.succeeded(workerId, `queue-${n}\nchat\n`, nowMs);
  }
  const held = heapBytes() - before;
  const failures = { count: 1, sinceMs: 0, begunMs: 4.5 };
  expect(record.witnesses('queue-0\nchat\n', 'e' as WorkerId, failures, 5)).toHaveLength(3);
  expect(held / 10_000).toBeLessThan(350);
});
