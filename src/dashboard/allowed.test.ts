import { expect, it } from 'vitest';
import { allowedOf } from './allowed.js';

const use = (
  allowed: number,
  perSeconds: number,
  limit: string | null = null,
  unit = 'requests',
) => {
  return {
    limit,
    unit,
    used: 0,
    allowed,
    per_seconds: perSeconds,
    counted_seconds: 60,
    next_in_ms: 0,
  };
};

it('R-AD6: every limit of a unit, the tightest first, without those far away', () => {
  const usage = [
    use(10, 1),
    use(9_000, 3_600),
    use(1_200, 60, 'account'),
    use(5_000, 60),
    use(5, 1, null, 'tokens'),
  ];
  const { drawn, wider } = allowedOf(usage, 'requests');
  expect(drawn).toEqual([
    { label: 'allowed: 9,000 requests an hour', perMinute: 150, isTightest: true },
    { label: 'allowed: 10 requests a second', perMinute: 600, isTightest: false },
    { label: 'allowed by account: 1,200 requests a minute', perMinute: 1_200, isTightest: false },
  ]);
  expect(wider.map(({ perMinute }) => perMinute)).toEqual([5_000]);
  expect(allowedOf(usage, 'tokens').drawn[0]?.label).toBe('allowed');
  expect(allowedOf([], 'tokens')).toEqual({ drawn: [], wider: [] });
});
