import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import {
  allowance,
  countsAgainstWorker,
  failuresToBench,
  isRefuted,
  mayBeBenched,
  mustBeBenched,
  probesAtOnce,
  standingOf,
  type FailuresInARow,
  type Trial,
} from './bench.js';

const kinds: fc.Arbitrary<string> = fc.constantFrom('a', 'b', 'c', 'd');
const failures = fc.dictionary(kinds, fc.integer({ min: 1, max: 8 })).map(toMap);
const benchMs = 60_000;
const instants = fc.integer({ min: 0, max: 300_000 });
const trials: fc.Arbitrary<Trial> = fc.record({
  benchedUntilMs: fc.option(instants),
  probesOut: fc.integer({ min: 0, max: 10 }),
  probedAtMs: instants,
});

function toMap(counts: Record<string, number>): FailuresInARow {
  return new Map(Object.entries(counts).map(([kind, count]) => [kind, failed(count)]));
}

function failed(count: number, sinceMs = 0, begunMs = 0) {
  return { count, sinceMs, begunMs };
}

describe('R-RE11: whether a worker is benched', () => {
  it('five failures at what others succeed at are needed, three for one that is tried', () => {
    for (const isTried of [false, true]) {
      const needed = isTried ? probesAtOnce : failuresToBench;
      const isSucceededAt = (kind: string): boolean => kind === 'a';
      expect(mustBeBenched(toMap({ a: needed }), isTried, isSucceededAt)).toBe(true);
      expect(mustBeBenched(toMap({ a: needed - 1, b: 99 }), isTried, isSucceededAt)).toBe(false);
    }
  });

  it('nobody is benched while nobody else succeeds', () => {
    fc.assert(
      fc.property(failures, fc.boolean(), (counts, isTried) => {
        expect(mustBeBenched(counts, isTried, () => false)).toBe(false);
      }),
    );
  });

  it('the more others succeed at, and the more it fails, the sooner', () => {
    fc.assert(
      fc.property(
        failures,
        fc.boolean(),
        fc.uniqueArray(kinds),
        kinds,
        (counts, tried, at, more) => {
          const before = mustBeBenched(counts, tried, (kind) => at.includes(kind));
          const wider = mustBeBenched(counts, tried, (kind) => at.includes(kind) || kind === more);
          const oneMore = failed((counts.get(more)?.count ?? 0) + 1);
          const later = mustBeBenched(new Map(counts).set(more, oneMore), tried, (kind) =>
            at.includes(kind),
          );
          if (before)
            expect([wider, later, mayBeBenched(counts, tried)]).toEqual([true, true, true]);
        },
      ),
    );
  });

  it('others refute it by what they did since it first failed, and did before it last began', () => {
    const failures = failed(5, 100, 200);
    const refuted = (sinceMs: number, lastMs: number) => isRefuted(failures, { sinceMs, lastMs });
    expect(refuted(50, 100)).toBe(false);
    expect(refuted(50, 101)).toBe(true);
    expect(refuted(150, 150)).toBe(true);
    expect(refuted(50, 300)).toBe(true);
    expect(refuted(200, 300)).toBe(false);
  });

  it('what is the fault of the task or of the service does not count', () => {
    const error = (code: string, retriable = true) => ({ code, message: '', retriable });
    for (const code of ['INVALID_INPUT', 'RESULT_TOO_LARGE', 'RATE_LIMITED']) {
      expect(countsAgainstWorker(error(code))).toBe(false);
    }
    expect(countsAgainstWorker(error('BROKEN', false))).toBe(false);
    for (const code of ['BROKEN', 'TIMEOUT', 'UNAVAILABLE', 'OUT_OF_MEMORY']) {
      expect(countsAgainstWorker(error(code))).toBe(true);
    }
  });
});

describe('R-RE11: what a worker may get', () => {
  it('nothing while it is benched, three at once after that, all it asks for when trusted', () => {
    fc.assert(
      fc.property(trials, instants, fc.nat(100), (trial, nowMs, wanted) => {
        const allowed = allowance(standingOf(trial, nowMs, benchMs), wanted);
        expect(allowed).toBeLessThanOrEqual(wanted);
        const { benchedUntilMs, probesOut } = trial;
        if (benchedUntilMs === null) expect(allowed).toBe(wanted);
        else if (nowMs < benchedUntilMs) expect(allowed).toBe(0);
        else expect(allowed).toBeLessThanOrEqual(probesAtOnce);
        if (benchedUntilMs !== null && probesOut === 0 && nowMs >= benchedUntilMs) {
          expect(allowed).toBe(Math.min(wanted, probesAtOnce));
        }
      }),
    );
  });

  it('probes that were never reported do not keep it out for ever', () => {
    fc.assert(
      fc.property(trials, fc.integer({ min: 1, max: 100 }), (trial, wanted) => {
        const laterMs = Math.max(trial.benchedUntilMs ?? 0, trial.probedAtMs + benchMs);
        expect(allowance(standingOf(trial, laterMs, benchMs), wanted)).toBeGreaterThan(0);
      }),
    );
  });

  it('who may get nothing is told when to ask again', () => {
    fc.assert(
      fc.property(trials, instants, (trial, nowMs) => {
        const standing = standingOf(trial, nowMs, benchMs);
        if (allowance(standing, 1) > 0) return;
        expect(standing.kind).not.toBe('trusted');
        if (standing.kind === 'trusted') return;
        expect(standing.untilMs).toBeGreaterThan(nowMs);
        expect(allowance(standingOf(trial, standing.untilMs, benchMs), 1)).toBeGreaterThanOrEqual(
          trial.probedAtMs + benchMs > standing.untilMs && trial.probesOut >= probesAtOnce ? 0 : 1,
        );
      }),
    );
  });
});
