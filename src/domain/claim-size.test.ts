import fc from 'fast-check';
import { expect, it } from 'vitest';
import { claimSize, defaultClaimBatch, memoryState, type Pressure } from './claim-size.js';

const none: Pressure = { memoryShare: 0.2, eventLoopDelayMs: 3, durationShare: 0 };
const freeSlots = fc.nat(5_000);
const pressure = fc.record({
  memoryShare: fc.double({ min: 0, max: 2, noNaN: true }),
  eventLoopDelayMs: fc.double({ min: 0, max: 10_000, noNaN: true }),
  durationShare: fc.double({ min: 0, max: 10, noNaN: true }),
});

it('R-WO3: without pressure a claim is as large as the free slots, up to a batch', () => {
  fc.assert(
    fc.property(freeSlots, (free) => {
      expect(claimSize(free, none)).toBe(Math.min(free, defaultClaimBatch));
    }),
  );
});

it('R-WO3: a claim is a whole number, at least 1 while a slot is free, 0 when none is', () => {
  fc.assert(
    fc.property(freeSlots, pressure, (free, felt) => {
      const size = claimSize(free, felt);
      expect(Number.isInteger(size)).toBe(true);
      expect(size).toBeLessThanOrEqual(Math.min(free, defaultClaimBatch));
      expect(size > 0).toBe(free > 0);
    }),
  );
});

it('R-WO3: more pressure never makes a larger claim, nor do fewer slots', () => {
  fc.assert(
    fc.property(freeSlots, freeSlots, pressure, pressure, (a, b, one, other) => {
      const least = {
        memoryShare: Math.min(one.memoryShare, other.memoryShare),
        eventLoopDelayMs: Math.min(one.eventLoopDelayMs, other.eventLoopDelayMs),
        durationShare: Math.min(one.durationShare, other.durationShare),
      };
      expect(claimSize(Math.min(a, b), one)).toBeLessThanOrEqual(claimSize(Math.max(a, b), least));
    }),
  );
});

it.each<[string, Partial<Pressure>, number]>([
  ['at 80 % memory', { memoryShare: 0.8 }, 50],
  ['above 80 % memory', { memoryShare: 0.81 }, 25],
  ['at its p99 threshold', { durationShare: 1 }, 50],
  ['above its p99 threshold', { durationShare: 1.01 }, 35],
  ['at 100 ms event-loop delay', { eventLoopDelayMs: 100 }, 50],
  ['above 100 ms event-loop delay', { eventLoopDelayMs: 101 }, 25],
  ['under all three', { memoryShare: 0.9, durationShare: 2, eventLoopDelayMs: 200 }, 8],
  ['above 95 % memory', { memoryShare: 0.96 }, 1],
])('R-WO3: the claim of a worker %s', (_, felt, size) => {
  expect(claimSize(1_000, { ...none, ...felt })).toBe(size);
});

it('R-WO3: memory is fine, then high, then critical', () => {
  const shares = [0, 0.8, 0.81, 0.95, 0.96, 2];
  expect(shares.map((memoryShare) => memoryState({ ...none, memoryShare }))).toEqual([
    ...['fine', 'fine'],
    ...['high', 'high'],
    ...['critical', 'critical'],
  ]);
});
