import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import {
  admit,
  allQueues,
  ceilingFaults,
  ceilingOf,
  ceilingOfQueue,
  needsOf,
  retryAfterSeconds,
  type Applicant,
  type Ceiling,
  type Drain,
  type Standing,
} from './admission.js';
import { priorities } from './priority.js';

const shares = { maxActiveMedium: '90%', maxActiveLow: '80%' } as const;

function applicant(changes: Partial<Applicant> = {}): Applicant {
  return { queue: 'q', priority: 'high', passesCeilings: false, key: null, ...changes };
}

describe('R-AD2: a ceiling', () => {
  it('is reached by low first and by high last', () => {
    expect(ceilingOf({ maxActive: 100, ...shares })).toEqual({ high: 100, medium: 90, low: 80 });
    expect(ceilingOf({ maxActive: 15, ...shares })).toEqual({ high: 15, medium: 13, low: 12 });
  });

  it('may be told in tasks', () => {
    const settings = { maxActive: 100, maxActiveMedium: 95, maxActiveLow: 7 };
    expect(ceilingOf(settings)).toEqual({ high: 100, medium: 95, low: 7 });
    expect(ceilingOfQueue(10, ceilingOf(settings))).toEqual({ high: 10, medium: 9, low: 1 });
  });

  it('leaves room for one of each priority', () => {
    expect(ceilingOf({ maxActive: 1, ...shares })).toEqual({ high: 1, medium: 1, low: 1 });
    const all = ceilingOf({ maxActive: 10_000_000, ...shares });
    expect(ceilingOfQueue(1, all)).toEqual({ high: 1, medium: 1, low: 1 });
    expect(ceilingOfQueue(1_000, all)).toEqual({ high: 1_000, medium: 900, low: 800 });
  });

  it('that makes no sense is told', () => {
    expect(ceilingFaults({ maxActive: 100, ...shares })).toEqual([]);
    expect(ceilingFaults({ maxActive: 0, ...shares })).toHaveLength(1);
    expect(ceilingFaults({ maxActive: 9, maxActiveMedium: '101%', maxActiveLow: 10 })).toHaveLength(
      2,
    );
    expect(ceilingFaults({ maxActive: 9, maxActiveMedium: '50%', maxActiveLow: '60%' })).toEqual([
      expect.stringContaining('less urgent tasks are refused first'),
    ]);
  });
});

const anyPriority = fc.constantFrom(...priorities);
const anyApplicant = fc.record({
  queue: fc.constantFrom('a', 'b', 'c'),
  priority: anyPriority,
  passesCeilings: fc.boolean(),
  key: fc.oneof(fc.constant(null), fc.constantFrom('k1', 'k2', 'k3')),
});
const anyCeiling = fc.tuple(fc.nat(20), fc.nat(20), fc.nat(20)).map((limits): Ceiling => {
  const [low = 0, medium = 0, high = 0] = [...limits].sort((one, other) => one - other);
  return { high, medium, low };
});
const anyStandings = fc
  .tuple(
    fc.record({ active: fc.nat(25), ceiling: anyCeiling }),
    fc.record({ active: fc.nat(25), ceiling: fc.option(anyCeiling) }),
    fc.record({ active: fc.nat(25), ceiling: fc.option(anyCeiling) }),
  )
  .map(
    ([all, a, b]) =>
      new Map<string, Standing>([
        [allQueues, all],
        ['a', a],
        ['b', b],
      ]),
  );

function placesOf(letIn: readonly Applicant[], scope: string): Applicant[] {
  const seen = new Set<string>();
  return letIn.filter(({ queue, key }) => {
    if (scope !== allQueues && queue !== scope) return false;
    if (key !== null && seen.has(key)) return false;
    if (key !== null) seen.add(key);
    return true;
  });
}

/** Those with one key are one task: the first of them. */
function asFirst(applicants: readonly Applicant[]): Applicant[] {
  return applicants.map((one) => ({
    ...(applicants.find(({ key }) => key !== null && key === one.key) ?? one),
  }));
}

describe('R-AD1: who is let in', () => {
  const standing = (active: number, maxActive: number): Map<string, Standing> =>
    new Map([[allQueues, { active, ceiling: ceilingOf({ maxActive, ...shares }) }]]);

  it('is as many as there are places', () => {
    const met = admit(
      Array.from({ length: 100 }, () => applicant()),
      standing(0, 15),
    );
    expect(met.filter((ceiling) => ceiling === null)).toHaveLength(15);
    expect(met.slice(0, 15)).not.toContainEqual(expect.anything());
    expect(met[15]).toEqual({ scope: allQueues, limit: 15, active: 15 });
  });

  it('R-AD2: is the more urgent first, whoever came first', () => {
    const met = admit(
      [
        applicant({ priority: 'low' }),
        applicant({ priority: 'medium' }),
        applicant({ priority: 'high' }),
      ],
      standing(88, 100),
    );
    expect(met).toEqual([{ scope: allQueues, limit: 80, active: 90 }, null, null]);
  });

  it('R-AD2: whoever passes the ceilings is, and takes a place', () => {
    const passing = applicant({ passesCeilings: true, priority: 'low' });
    expect(admit([applicant(), passing], standing(14, 15))).toEqual([
      { scope: allQueues, limit: 15, active: 15 },
      null,
    ]);
    expect(admit([passing], standing(1_000, 15))).toEqual([null]);
  });

  it('of one key all or none, for one place', () => {
    const twice = [applicant({ key: 'k' }), applicant({ key: 'k' }), applicant()];
    expect(admit(twice, standing(13, 15))).toEqual([null, null, null]);
    expect(admit(twice, standing(14, 15))).toEqual([null, null, expect.anything()]);
    expect(admit(twice, standing(15, 15)).every((ceiling) => ceiling !== null)).toBe(true);
  });

  it('a ceiling of its queue counts as well as that of all', () => {
    const standings = standing(0, 100);
    standings.set('q', { active: 4, ceiling: ceilingOf({ maxActive: 5, ...shares }) });
    const met = admit([applicant(), applicant(), applicant({ queue: 'other' })], standings);
    expect(met).toEqual([null, { scope: 'q', limit: 5, active: 5 }, null]);
  });

  it('fills no scope beyond its ceiling, and refuses nobody who would fit', () => {
    fc.assert(
      fc.property(fc.array(anyApplicant, { maxLength: 30 }), anyStandings, (some, standings) => {
        const applicants = asFirst(some);
        const met = admit(applicants, standings);
        const letIn = applicants.filter((_, index) => met[index] === null);
        for (const [scope, { active, ceiling }] of standings) {
          if (ceiling === null) continue;
          const places = placesOf(letIn, scope);
          for (const priority of priorities) {
            const ahead = places.filter(
              (one) =>
                one.passesCeilings ||
                priorities.indexOf(one.priority) <= priorities.indexOf(priority),
            ).length;
            const has = places.some((one) => !one.passesCeilings && one.priority === priority);
            if (has) expect(active + ahead).toBeLessThanOrEqual(ceiling[priority]);
          }
        }
        applicants.forEach((one, index) => {
          const reached = met[index] ?? null;
          if (reached === null) return;
          expect(one.passesCeilings).toBe(false);
          expect(reached.active).toBeGreaterThanOrEqual(reached.limit);
          const total = (standings.get(reached.scope)?.active ?? 0) + letIn.length;
          expect(reached.active).toBeLessThanOrEqual(total);
        });
      }),
    );
  });

  it('agrees with what a whole batch needs: all are let in exactly when no more is active', () => {
    fc.assert(
      fc.property(
        fc.array(anyApplicant, { minLength: 1, maxLength: 30 }),
        anyStandings,
        (some, standings) => {
          const applicants = asFirst(some);
          const ceilings = new Map(
            [...standings].flatMap(([scope, { ceiling }]) =>
              ceiling === null ? [] : [[scope, ceiling] as const],
            ),
          );
          const fits = needsOf(applicants, ceilings).every(
            ({ scope, mostBefore }) =>
              mostBefore === null || (standings.get(scope)?.active ?? 0) <= mostBefore,
          );
          expect(admit(applicants, standings).every((ceiling) => ceiling === null)).toBe(fits);
        },
      ),
    );
  });
});

describe('R-AD3: when to come back', () => {
  const drain: Drain = {
    mustEnd: 10,
    endedPerSecond: 2,
    fastestPerSecond: null,
    pausedForMs: 0,
  };

  it('is when enough have ended, with up to a fifth more', () => {
    expect(retryAfterSeconds(drain, 0)).toBe(5);
    expect(retryAfterSeconds(drain, 0.999)).toBeCloseTo(6, 1);
  });

  it('is not sooner than the limits of the queue, or its pause, allow', () => {
    expect(retryAfterSeconds({ ...drain, fastestPerSecond: 1 }, 0)).toBe(10);
    expect(retryAfterSeconds({ ...drain, fastestPerSecond: 100 }, 0)).toBe(5);
    expect(retryAfterSeconds({ ...drain, pausedForMs: 30_000 }, 0)).toBe(35);
  });

  it('is from a second to an hour, whatever is known', () => {
    const rate = fc.option(fc.double({ min: 1e-9, max: 1e9, noNaN: true }));
    fc.assert(
      fc.property(
        fc.record({
          mustEnd: fc.integer({ min: 1, max: 1e9 }),
          endedPerSecond: rate,
          fastestPerSecond: rate,
          pausedForMs: fc.nat(),
        }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (any, random) => {
          const seconds = retryAfterSeconds(any, random);
          expect(seconds).toBeGreaterThanOrEqual(1);
          expect(seconds).toBeLessThanOrEqual(3_600);
        },
      ),
    );
  });
});
