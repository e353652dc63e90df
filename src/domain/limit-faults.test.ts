import { describe, expect, it } from 'vitest';
import { costFaults, queueLimitFaults, rateLimitFaults } from './limit-faults.js';
import type { QueueLimit, RateLimit } from './queue-settings.js';

const limit: RateLimit = { unit: 'requests', rate: 500, perSeconds: 60, burst: null };
const pathsOf = (faults: readonly { path: string }[]) => faults.map(({ path }) => path);

describe('R-CH4: what can be a rate limit', () => {
  it.each<[string, Partial<RateLimit>, string[]]>([
    ['500 a minute', {}, []],
    ['one a year', { rate: 1, perSeconds: 31_536_000 }, []],
    ['the most in a minute', { rate: 1e9 }, []],
    ['none', { rate: 0 }, ['/rate']],
    ['less than none', { rate: -1 }, ['/rate']],
    ['one and a half', { rate: 1.5 }, ['/rate']],
    ['no number', { rate: Number.NaN }, ['/rate']],
    ['endless', { rate: Number.POSITIVE_INFINITY }, ['/rate']],
    ['too many', { rate: 1e9 + 1 }, ['/rate']],
    ['no window', { perSeconds: 0 }, ['/per_seconds']],
    ['more than a year', { perSeconds: 31_536_001 }, ['/per_seconds']],
    ['no burst at all', { burst: 0 }, ['/burst']],
    ['all of it', { rate: 0, perSeconds: 0.5, burst: -1 }, ['/rate', '/per_seconds', '/burst']],
    ['too fine to be exact', { rate: 1e9, perSeconds: 86_400 }, ['/rate']],
    ['a burst too fine to be exact', { burst: 1e9 }, ['/burst']],
  ])('%s', (_, change, paths) => {
    expect(pathsOf(rateLimitFaults({ ...limit, ...change }))).toEqual(paths);
  });

  it('says the most that is exact, and that is', () => {
    for (const [field, change] of [
      ['rate', { perSeconds: 86_400 }],
      ['burst', { perSeconds: 86_400 }],
    ] as const) {
      const [fault] = rateLimitFaults({ ...limit, ...change, [field]: 1e9 });
      const most = Number(/at most (\d+)/.exec(fault?.message ?? '')?.[1]);
      expect(rateLimitFaults({ ...limit, ...change, [field]: most })).toEqual([]);
      expect(rateLimitFaults({ ...limit, ...change, [field]: most + 1 })).toHaveLength(1);
    }
  });

  it.each<[string, QueueLimit[], string[]]>([
    ['one of each unit', [limit, { ...limit, unit: 'tokens' }], []],
    ['a unit of its own and shared ones', [limit, { use: 'requests' }, { use: 'b' }], []],
    ['a unit twice', [limit, { ...limit, perSeconds: 1 }], ['/limits/1/unit']],
    ['a shared limit twice', [{ use: 'a' }, { use: 'b' }, { use: 'a' }], ['/limits/2/use']],
    ['a bad one among good ones', [limit, { ...limit, unit: 'x', rate: 0 }], ['/limits/1/rate']],
  ])('of a queue: %s', (_, limits, paths) => {
    expect(pathsOf(queueLimitFaults(limits))).toEqual(paths);
  });

  it.each<[string, Record<string, number>, string[]]>([
    ['tokens', { tokens: 1200, images: 0 }, []],
    ['a negative one', { tokens: -1 }, ['/cost/tokens']],
    ['half of one', { tokens: 0.5 }, ['/cost/tokens']],
    ['far too many', { tokens: 1e13 }, ['/cost/tokens']],
    ['requests, of which each task costs one', { requests: 1 }, ['/cost/requests']],
  ])('R-CH5: as a cost: %s', (_, cost, paths) => {
    expect(pathsOf(costFaults(cost))).toEqual(paths);
  });
});
