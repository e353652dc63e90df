import { expect, it } from 'vitest';
import { heapBytes } from '../../test/support/heap-bytes.js';
import type { TaskId } from '../domain/ids.js';
import type { TaskEvent } from '../protocol/events.js';
import { Throughput } from './throughput.js';

const beganMs = Date.UTC(2026, 0, 31);
const minuteMs = 60_000;

it('R-AD7: queues that nothing happens in any more are not kept, however many there were', () => {
  const throughput = new Throughput(100);
  for (let n = 0; n < 500; n += 1) throughput.note(completed(`queue-${n}`, beganMs + n));
  expect(throughput.queues).toBe(100);

  // Whoever looks at a queue does not keep it.
  throughput.lastMinute(beganMs + minuteMs, 'queue-0');
  throughput.note(completed('busy', beganMs + minuteMs));
  throughput.note(completed('busy', beganMs + 2 * minuteMs));
  expect(throughput.queues).toBe(1);
});

it('R-AD7: a queue is counted by itself whatever was invented before it', () => {
  const throughput = new Throughput(100);
  for (let n = 0; n < 500; n += 1) throughput.note(completed(`queue-${n}`, beganMs));
  const laterMs = beganMs + 2 * minuteMs;
  throughput.note(completed('late', laterMs));
  expect(throughput.lastMinute(laterMs, 'late')).toEqual({ started: 0, completed: 1, failed: 0 });
});

it('keeps what was counted in the last minute', () => {
  const throughput = new Throughput(100);
  throughput.note(completed('a', beganMs));
  throughput.note(completed('a', beganMs + minuteMs / 2));
  const nowMs = beganMs + minuteMs + 1_000;
  throughput.note(completed('b', nowMs));
  expect(throughput.lastMinute(nowMs, 'a').completed).toBe(1);
  expect(throughput.averageDurationSeconds(nowMs, 'a')).toBe(2);
});

it('R-LA3: a queue takes less than 300 bytes of the heap', () => {
  const throughput = new Throughput();
  const before = heapBytes();
  for (let n = 0; n < 20_000; n += 1) throughput.note(completed(`queue-${n}`, beganMs));
  const held = heapBytes() - before;
  expect(throughput.queues).toBe(20_000);
  expect(held / 20_000).toBeLessThan(300);
});

function completed(queue: string, atMs: number): TaskEvent {
  return {
    taskId: '0197f0c4-8a3b-7c21-9d55-3f0f5a1c2b3d' as TaskId,
    queue,
    taskType: 'chat',
    priority: 'medium',
    from: 'executing',
    to: 'completed',
    attempt: 1,
    durationMs: 2_000,
    at: new Date(atMs),
  };
}
