import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RateLimit } from './queue-settings.js';
import {
  bucketShape,
  costIn,
  countedAtMost,
  levelAt,
  neededLevel,
  refilled,
  reshaped,
  settled,
  spent,
  tokensAfterLoss,
  tokensAt,
  tokensAtMost,
  waitMsFor,
} from './token-bucket.js';

interface Grant {
  readonly atMs: number;
  readonly cost: number;
}

const dayS = 86_400;

/** One bucket and its clock, in whole milliseconds. */
class Simulation {
  readonly limit: RateLimit;
  readonly grants: Grant[] = [];
  nowMs = 0;
  level: number;

  constructor(limit: RateLimit) {
    this.limit = limit;
    this.level = bucketShape(limit).capacity;
  }

  get waitFor(): (cost: number) => number {
    return (cost) => waitMsFor(bucketShape(this.limit), this.level, cost);
  }

  pass(ms: number): void {
    this.level = refilled(bucketShape(this.limit), this.level, ms);
    this.nowMs += ms;
  }

  /** False: it does not hold what that costs. */
  grant(cost: number): boolean {
    if (this.waitFor(cost) > 0) return false;
    this.level = spent(bucketShape(this.limit), this.level, cost);
    this.grants.push({ atMs: this.nowMs, cost });
    return true;
  }
}

/** The most that a half-open window of the limit holds, wherever it begins. */
function mostInWindow({ limit, grants }: Simulation): number {
  const windowMs = limit.perSeconds * 1000;
  let most = 0;
  let inWindow = 0;
  let first = 0;
  for (const { atMs, cost } of grants) {
    inWindow += cost;
    for (let oldest = grants[first]; oldest !== undefined; oldest = grants[first]) {
      if (oldest.atMs > atMs - windowMs) break;
      inWindow -= oldest.cost;
      first += 1;
    }
    most = Math.max(most, inWindow);
  }
  return most;
}

/** Takes one after the other of a cost of 1, each `lateMs` after it may, for so many windows. */
function usedShare(limit: RateLimit, windows: number, lateMs: () => number = () => 0): number {
  const simulation = new Simulation(limit);
  const endMs = windows * limit.perSeconds * 1000;
  while (simulation.nowMs < endMs) {
    if (!simulation.grant(1)) simulation.pass(simulation.waitFor(1) + lateMs());
  }
  return simulation.grants.length / (windows * limit.rate);
}

const perSeconds = fc.oneof(
  fc.constantFrom(1, 2, 60, 3600, dayS),
  fc.integer({ min: 1, max: 1000 }),
);
const rate = fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 20_000 }));
const defaultLimit = fc.record({
  unit: fc.constant('tokens'),
  rate,
  perSeconds,
  burst: fc.constant(null),
});
const burstLimit = fc.record({
  unit: fc.constant('tokens'),
  rate,
  perSeconds,
  burst: fc.integer({ min: 1, max: 500 }),
});
const anyLimit = fc.oneof(defaultLimit, burstLimit);

/** A taker's habits: shares of what the bucket holds for costs, and of a window for pauses. */
const habits = fc.array(
  fc.record({
    costShare: fc.double({ min: 0, max: 1, noNaN: true }),
    pauseShare: fc.oneof(
      { weight: 6, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.double({ min: 0, max: 1.2, noNaN: true }) },
    ),
    lateMs: fc.oneof(fc.constant(0), fc.nat(20)),
  }),
  { minLength: 1, maxLength: 12 },
);

type Habit = (typeof habits extends fc.Arbitrary<infer Value> ? Value : never)[number];

function capacityOf(limit: RateLimit): number {
  const shape = bucketShape(limit);
  return tokensAt(shape, shape.capacity);
}

/** Calls back for grant after grant, with habits that repeat themselves, as greedily as they allow. */
function live(
  simulation: Simulation,
  repeated: readonly Habit[],
  steps: number,
  costOf: (habit: Habit) => number,
  before: (waitMs: number) => void = (waitMs) => simulation.pass(waitMs),
): void {
  const windowMs = simulation.limit.perSeconds * 1000;
  for (let step = 0; step < steps; step += 1) {
    const habit = repeated[step % repeated.length];
    if (habit === undefined) return;
    const waitMs = simulation.waitFor(costOf(habit));
    before(waitMs + habit.lateMs + Math.round(habit.pauseShare * windowMs));
    simulation.grant(costOf(habit));
  }
}

describe('a rate limit', () => {
  it('R-CH4: never passes more than its rate in any window, whole costs and whole milliseconds', () => {
    fc.assert(
      fc.property(defaultLimit, habits, (limit, repeated) => {
        const simulation = new Simulation(limit);
        const most = Math.floor(capacityOf(limit));
        live(simulation, repeated, 400, ({ costShare }) => Math.round(costShare * most));
        expect(mostInWindow(simulation)).toBeLessThanOrEqual(limit.rate);
      }),
    );
  });

  it('R-CH4: with a burst, never more than both', () => {
    fc.assert(
      fc.property(burstLimit, habits, (limit, repeated) => {
        const simulation = new Simulation(limit);
        live(simulation, repeated, 400, ({ costShare }) => Math.round(costShare * limit.burst));
        expect(mostInWindow(simulation)).toBeLessThanOrEqual(limit.rate + limit.burst);
      }),
    );
  });

  it('R-CH5: with costs above what the bucket holds, never more than the rate and one of them', () => {
    fc.assert(
      fc.property(anyLimit, habits, fc.integer({ min: 1, max: 30 }), (limit, repeated, times) => {
        const simulation = new Simulation(limit);
        const dearest = Math.ceil(capacityOf(limit)) * times;
        live(simulation, repeated, 400, ({ costShare }) => Math.ceil(costShare * dearest));
        const bound = limit.rate + Math.max(dearest, limit.burst ?? 0);
        expect(mostInWindow(simulation)).toBeLessThanOrEqual(bound);
      }),
    );
  });

  it('R-CH4: what is granted was not granted a millisecond before', () => {
    fc.assert(
      fc.property(anyLimit, fc.nat(2000), fc.integer(), (limit, cost, hundredths) => {
        const shape = bucketShape(limit);
        const level = levelAt(shape, hundredths / 100);
        const waitMs = waitMsFor(shape, level, cost);
        const needed = neededLevel(shape, cost);
        expect(refilled(shape, level, waitMs)).toBeGreaterThanOrEqual(needed);
        if (waitMs > 0) expect(refilled(shape, level, waitMs - 1)).toBeLessThan(needed);
      }),
    );
  });
});

describe('the use of a rate limit', () => {
  const usual = [
    { rate: 20, perSeconds: 60 },
    { rate: 600, perSeconds: 60 },
    { rate: 6000, perSeconds: 60 },
    { rate: 5, perSeconds: dayS },
  ];

  for (const { rate: perWindow, perSeconds: seconds } of usual) {
    it(`R-CH4: at least 99.5 % of ${perWindow} in ${seconds} s when there is always work`, () => {
      const limit = { unit: 'requests', rate: perWindow, perSeconds: seconds, burst: null };
      expect(usedShare(limit, Math.ceil(20_000 / perWindow))).toBeGreaterThanOrEqual(0.995);
    });
  }

  it('R-CH4: at least 99.5 % of any rate', () => {
    fc.assert(
      fc.property(defaultLimit, (limit) => {
        const share = usedShare(limit, Math.max(2, Math.ceil(4000 / limit.rate)));
        expect(share).toBeGreaterThanOrEqual(0.995);
      }),
      { numRuns: 60 },
    );
  });

  it('R-CH4: at least 99.5 % of 100 a second when wake-ups are up to 3 ms late', () => {
    const limit = { unit: 'requests', rate: 100, perSeconds: 1, burst: null };
    fc.assert(
      fc.property(fc.array(fc.nat(3), { minLength: 1, maxLength: 50 }), (delays) => {
        let wakes = 0;
        const lateMs = () => delays[wakes++ % delays.length] ?? 0;
        expect(usedShare(limit, 100, lateMs)).toBeGreaterThanOrEqual(0.995);
      }),
      { numRuns: 30 },
    );
  });
});

describe('a level that was lost', () => {
  /** Lives on with checkpoints, as the engine makes them, and is lost again and again. */
  class Lossy extends Simulation {
    #saved: { readonly tokens: number; readonly atMs: number } | null = null;

    get tokens(): number {
      return tokensAt(bucketShape(this.limit), this.level);
    }

    save(): void {
      this.#saved = { tokens: this.tokens, atMs: this.nowMs };
    }

    /** What is gone is neither the time nor what was granted. */
    lose(awayMs: number): void {
      this.pass(awayMs);
      const { tokens, atMs } = this.#saved ?? { tokens: capacityOf(this.limit), atMs: 0 };
      const checkpoint = { tokens, ageMs: this.nowMs - atMs, isFinal: false };
      this.level = levelAt(bucketShape(this.limit), tokensAfterLoss(this.limit, checkpoint));
    }
  }

  const fates = fc.array(
    fc.record({
      saveAfterMs: fc.nat(5_000),
      isLost: fc.nat(6).map((one) => one === 0),
      awayMs: fc.oneof(fc.constant(0), fc.nat(10_000), fc.nat(100_000)),
    }),
    { minLength: 1, maxLength: 12 },
  );

  function liveLossily(
    simulation: Lossy,
    repeated: readonly Habit[],
    repeatedFates: readonly (typeof fates extends fc.Arbitrary<infer V> ? V : never)[number][],
    costOf: (habit: Habit) => number,
  ): number {
    let step = 0;
    let losses = 0;
    let changedAtMs = Number.POSITIVE_INFINITY;
    live(simulation, repeated, 400, costOf, (waitMs) => {
      const fate = repeatedFates[step++ % repeatedFates.length];
      if (fate === undefined) return;
      if (simulation.grants.at(-1)?.atMs === simulation.nowMs) {
        changedAtMs = Math.min(changedAtMs, simulation.nowMs);
      }
      // A grant is written down before it is too old, whatever comes.
      const saveInMs = changedAtMs + fate.saveAfterMs - simulation.nowMs;
      const savesFirst = saveInMs <= waitMs;
      if (savesFirst) {
        simulation.pass(Math.max(0, saveInMs));
        simulation.save();
        changedAtMs = Number.POSITIVE_INFINITY;
      }
      simulation.pass(savesFirst ? Math.max(0, waitMs - Math.max(0, saveInMs)) : waitMs);
      if (!fate.isLost) return;
      losses += 1;
      simulation.lose(fate.awayMs);
    });
    return losses;
  }

  it('R-CH4: never lets a window over its bound, whenever it is lost and however often', () => {
    fc.assert(
      fc.property(anyLimit, habits, fates, (limit, repeated, repeatedFates) => {
        const simulation = new Lossy(limit);
        const most = Math.floor(capacityOf(limit));
        liveLossily(simulation, repeated, repeatedFates, ({ costShare }) =>
          Math.round(costShare * most),
        );
        expect(mostInWindow(simulation)).toBeLessThanOrEqual(limit.rate + (limit.burst ?? 0));
      }),
      { numRuns: 500 },
    );
  });

  it('R-CH5: with costs above what the bucket holds, each loss adds one of them at most', () => {
    fc.assert(
      fc.property(anyLimit, habits, fates, (limit, repeated, repeatedFates) => {
        const simulation = new Lossy(limit);
        const dearest = Math.ceil(capacityOf(limit)) * 20;
        const losses = liveLossily(simulation, repeated, repeatedFates, ({ costShare }) =>
          Math.ceil(costShare * dearest),
        );
        const bound = limit.rate + (1 + losses) * dearest;
        expect(mostInWindow(simulation)).toBeLessThanOrEqual(bound);
      }),
    );
  });

  it('R-CH4: is never more than was there', () => {
    const limit = { unit: 'requests', rate: 20, perSeconds: 60, burst: null };
    // Full for four seconds, then one granted: 0.08 were left, not what came and went.
    expect(tokensAfterLoss(limit, { tokens: 1.08, ageMs: 4000, isFinal: false })).toBe(0);
    expect(tokensAfterLoss(limit, { tokens: 0.25, ageMs: 1000, isFinal: false })).toBeCloseTo(
      0.25 + 0.332,
    );
    expect(tokensAfterLoss(limit, { tokens: -3, ageMs: 1000, isFinal: false })).toBeCloseTo(-2.668);
  });

  it('R-CH5: what is known to run bounds what is left, however dear', () => {
    const step = fc.record({ waitMs: fc.nat(5_000), cost: fc.nat(5_000), isKnown: fc.boolean() });
    fc.assert(
      fc.property(anyLimit, fc.array(step, { maxLength: 20 }), (limit, steps) => {
        const shape = bucketShape(limit);
        let level = shape.capacity;
        let nowMs = 0;
        const grants: { cost: number; atMs: number }[] = [];
        for (const { waitMs, cost, isKnown } of steps) {
          nowMs += waitMs;
          level = refilled(shape, level, waitMs);
          if (level < neededLevel(shape, cost)) continue;
          level = spent(shape, level, cost);
          if (isKnown) grants.push({ cost, atMs: nowMs });
        }
        const known = grants.map(({ cost, atMs }) => ({ cost, agoMs: nowMs - atMs }));
        const most = tokensAtMost(limit, known);
        expect(most).toBeGreaterThanOrEqual(tokensAt(shape, level) - 1e-6);
        if (known.length === 0) expect(most).toBeCloseTo(tokensAt(shape, shape.capacity));
      }),
    );
    const dear = { unit: 'tokens', rate: 30_000, perSeconds: 60, burst: null };
    expect(tokensAtMost(dear, [{ cost: 1_200, agoMs: 0 }])).toBeCloseTo(121 - 1_200);
  });

  it('R-CH4: a clean stop loses nothing', () => {
    fc.assert(
      fc.property(anyLimit, habits, fc.nat(10_000_000), (limit, repeated, awayMs) => {
        const simulation = new Simulation(limit);
        live(simulation, repeated, 20, ({ costShare }) => Math.ceil(costShare * 50));
        const shape = bucketShape(limit);
        const tokens = tokensAt(shape, simulation.level);
        const after = tokensAfterLoss(limit, { tokens, ageMs: awayMs, isFinal: true });
        simulation.pass(awayMs);
        expect(after).toBeCloseTo(tokensAt(shape, simulation.level), 6);
      }),
    );
  });
});

describe('what changes a level', () => {
  const tokens = fc.integer({ min: -500, max: 500 });

  it('R-CH5: a settlement gives back what was not used, up to the capacity, or leaves a debt', () => {
    fc.assert(
      fc.property(anyLimit, tokens, fc.nat(500), fc.nat(500), (limit, held, reserved, used) => {
        const shape = bucketShape(limit);
        const before = levelAt(shape, held);
        const after = settled(shape, before, reserved, used);
        const more = countedAtMost(shape, reserved) - countedAtMost(shape, used);
        expect(after).toBe(Math.min(shape.capacity, before + more * shape.token));
        expect(after).toBeLessThanOrEqual(shape.capacity);
      }),
    );
  });

  it('R-CH5: what was granted is held to what it really used, however much it had reserved', () => {
    const anyCost = fc.oneof(fc.nat(500), fc.integer({ min: 0, max: 1e12 }));
    fc.assert(
      fc.property(anyLimit, anyCost, fc.nat(500), (limit, cost, used) => {
        const shape = bucketShape(limit);
        const after = settled(shape, spent(shape, shape.capacity, cost), cost, used);
        const tokensLeft = tokensAt(shape, after);
        expect(tokensLeft).toBeCloseTo(capacityOf(limit) - countedAtMost(shape, used), 4);
      }),
    );
  });

  it('R-CH5: a debt is paid within an hour or ten windows, whatever a task costs or uses', () => {
    fc.assert(
      fc.property(anyLimit, fc.double({ min: 0, max: 1e12, noNaN: true }), (limit, much) => {
        const shape = bucketShape(limit);
        const longestMs = Math.max(3_600_000, limit.perSeconds * 10_000);
        for (const level of [
          spent(shape, shape.capacity, much),
          settled(shape, shape.capacity, 0, much),
        ]) {
          expect(waitMsFor(shape, level, 0)).toBeLessThanOrEqual(longestMs);
        }
      }),
    );
  });

  it('R-CH7: a changed limit gives no tokens away', () => {
    fc.assert(
      fc.property(anyLimit, anyLimit, tokens, (from, to, held) => {
        const [before, after] = [bucketShape(from), bucketShape(to)];
        const level = levelAt(before, held);
        const changed = tokensAt(after, reshaped(level, before, after));
        expect(changed).toBeCloseTo(Math.min(tokensAt(before, level), capacityOf(to)), 6);
      }),
    );
  });

  it('R-CH5: a task costs one request, and of another unit what it says', () => {
    expect(costIn('requests', { requests: 9 })).toBe(1);
    expect(costIn('tokens', { tokens: 9 })).toBe(9);
    expect(costIn('tokens', {})).toBe(0);
    expect(costIn('constructor', {})).toBe(0);
  });
});
