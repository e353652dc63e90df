import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  parseSubmissionLimits,
  comeBackSeconds,
  shortage,
  slotAt,
  submissionLimitConflicts,
  submissionLimitText,
  type SubmissionSlot,
} from './submission-limit.js';

const minute = { rate: 3, perSeconds: 60 };
const hour = { rate: 5, perSeconds: 3_600 };

function slots(...given: [atMs: number, tasks: number][]): SubmissionSlot[] {
  return [minute, hour].flatMap(({ perSeconds }) =>
    given.map(([atMs, tasks]) => ({ perSeconds, slot: slotAt({ perSeconds }, atMs), tasks })),
  );
}

describe('a limit on submissions', () => {
  it('R-AD4: has room until its rate is used up', () => {
    expect(shortage([minute], [], 1_000)).toBeNull();
    expect(shortage([minute], slots([0, 2]), 1_000)).toBeNull();
    expect(shortage([minute], slots([0, 3]), 1_000)).toEqual({
      limit: minute,
      waitMs: 61_200 - 1_000,
    });
  });

  it('R-AD4: has room again when enough of its oldest slots are over', () => {
    const used = slots([0, 1], [10_000, 1], [20_000, 1]);
    expect(shortage([minute], used, 20_000)?.waitMs).toBe(61_200 - 20_000);
    // Of five, as from before the rate was lowered, three have to go.
    const more = slots([0, 2], [10_000, 1], [20_000, 2]);
    expect(shortage([minute], more, 20_000)?.waitMs).toBe(9_600 + 61_200 - 20_000);
  });

  it('R-AD4: of several the one that lasts longest is named', () => {
    const used = slots([0, 5]);
    expect(shortage([minute, hour], used, 0)).toEqual({ limit: hour, waitMs: 3_600_000 * 1.02 });
    expect(shortage([minute, hour], slots([0, 3]), 0)?.limit).toBe(minute);
    expect(shortage([], used, 0)).toBeNull();
  });

  it('R-AD3: what is told to wait is never too short, at least a second, and later by a tenth at most', () => {
    fc.assert(
      fc.property(
        fc.nat(4_000_000),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (waitMs, random) => {
          const seconds = comeBackSeconds(waitMs, random);
          expect(Number.isInteger(seconds)).toBe(true);
          expect(seconds).toBeGreaterThanOrEqual(Math.max(1, waitMs / 1_000));
          expect(seconds).toBeLessThanOrEqual(Math.ceil((waitMs * 1.1) / 1_000) || 1);
        },
      ),
    );
  });

  it('reads as people say it', () => {
    expect(submissionLimitText({ rate: 1_000, perSeconds: 3_600 })).toBe('1,000 tasks an hour');
  });
});

describe('the text of limits on submissions', () => {
  it('R-AD4: names tasks and windows', () => {
    const minuteAndHour = [
      { rate: 100, perSeconds: 60 },
      { rate: 1_000, perSeconds: 3_600 },
    ];
    for (const text of ['100/60s,1000/3600s', '100/m, 1000/h', ' 100/1m,1000/60m']) {
      expect(parseSubmissionLimits(text)).toEqual(minuteAndHour);
    }
    expect(parseSubmissionLimits('5/31d')).toEqual([{ rate: 5, perSeconds: 31 * 86_400 }]);
  });

  it('R-RE10: what would have no meaning is refused', () => {
    const wrong = ['', 'off', '100', '100/60', '0/60s', '10/0s', '-1/60s', '1.5/60s', '10/32d'];
    const twice = [
      '10/60s,20/1m',
      '10/60s,5/1h',
      '10/1h,20/60s',
      '10/60s,',
      '1/1s,2/2s,3/3s,4/4s,5/5s',
    ];
    for (const text of [...wrong, ...twice, '9999999999/1d']) {
      expect(parseSubmissionLimits(text), text).toBeNull();
    }
    const perUser = [{ rate: 1.5, perSeconds: 60 }];
    expect(submissionLimitConflicts({ perKey: [], perUser })).toEqual([
      expect.stringMatching(/^perUser must be up to 4 limits like 100\/60s/),
    ]);
  });
});
