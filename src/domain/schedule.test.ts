import { expect, it } from 'vitest';

import { scheduleFaults } from './schedule.js';

const dayMs = 24 * 3_600_000;
const nowMs = Date.parse('2026-01-01T00:00:00Z');

it('R-HA6: a task may be scheduled up to maxScheduleDays ahead', () => {
  expect(scheduleFaults({}, nowMs, 2)).toEqual([]);
  expect(scheduleFaults({ runAt: new Date(nowMs + 2 * dayMs) }, nowMs, 2)).toEqual([]);
  expect(scheduleFaults({ runAt: new Date(0) }, nowMs, 2)).toEqual([]);
  expect(scheduleFaults({ delaySeconds: 2 * 86_400 }, nowMs, 2)).toEqual([]);
});

it('R-HA6: beyond that it is refused with the field and the setting', () => {
  const message = 'must be at most 2 days from now (maxScheduleDays)';
  const runAt = new Date(nowMs + 2 * dayMs + 1);
  expect(scheduleFaults({ runAt }, nowMs, 2)).toEqual([{ path: '/run_at', message }]);
  const delayed = scheduleFaults({ delaySeconds: 2 * 86_400 + 1 }, nowMs, 2);
  expect(delayed).toEqual([{ path: '/delay_seconds', message }]);
});

it('what is no time is refused', () => {
  expect(scheduleFaults({ runAt: new Date(NaN) }, nowMs, 2)).toHaveLength(1);
  expect(scheduleFaults({ delaySeconds: NaN }, nowMs, 2)).toHaveLength(1);
});
