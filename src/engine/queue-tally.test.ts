import fc from 'fast-check';
import { expect, it } from 'vitest';
import { QueueTally } from './queue-tally.js';

const bucketMs = 5_000;
const kinds = ['started', 'completed', 'failed'] as const;

interface Event {
  readonly queue: string;
  readonly kind: (typeof kinds)[number];
  readonly durationMs: number;
  readonly atMs: number;
}

it('counts of each queue what happened in the last minute, to the nearest bucket', () => {
  const step = fc.record({
    queue: fc.constantFrom('a', 'b', 'c'),
    kind: fc.constantFrom(...kinds),
    durationMs: fc.integer({ min: 0, max: 100 }),
    waitMs: fc.integer({ min: 0, max: 20_000 }),
    forgets: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const tally = new QueueTally(3);
      const events: Event[] = [];
      let nowMs = Date.UTC(2026, 0, 31);
      for (const { waitMs, forgets, ...event } of steps) {
        nowMs += waitMs;
        if (forgets) tally.forgetQuiet(nowMs);
        tally.add(event.queue, event.kind, nowMs, event.durationMs);
        events.push({ ...event, atMs: nowMs });
      }
      for (const laterMs of [0, 4_000, 30_000, 60_000])
        expectTotals(tally, events, nowMs + laterMs);
    }),
  );
});

it('counts no more queues than it has room for, and another one in place of one that was quiet', () => {
  const tally = new QueueTally(1);
  tally.add('a', 'completed', 0, 10);
  tally.add('b', 'completed', 0, 10);
  expect([tally.size, tally.total('b', 'completed', 0)]).toEqual([1, 0]);

  tally.forgetQuiet(59_999);
  expect(tally.total('a', 'completed', 59_999)).toBe(1);
  tally.forgetQuiet(60_000);
  tally.add('b', 'started', 60_000, 0);
  expect(tally.total('a', 'completed', 60_000)).toBe(0);
  expect(tally.total('b', 'completed', 60_000)).toBe(0);
  expect(tally.total('b', 'started', 60_000)).toBe(1);
});

function expectTotals(tally: QueueTally, events: readonly Event[], nowMs: number): void {
  const oldest = Math.floor(nowMs / bucketMs) - 11;
  for (const queue of ['a', 'b', 'c']) {
    const seen = events.filter(
      (event) => event.queue === queue && Math.floor(event.atMs / bucketMs) >= oldest,
    );
    for (const kind of kinds) {
      const expected = seen.filter((event) => event.kind === kind).length;
      expect(tally.total(queue, kind, nowMs)).toBe(expected);
    }
    const durationMs = seen.reduce((sum, event) => sum + event.durationMs, 0);
    expect(tally.total(queue, 'durationMs', nowMs)).toBe(durationMs);
  }
}
