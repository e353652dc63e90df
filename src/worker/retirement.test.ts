import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { until } from '../../test/support/until.js';
import { Retirement } from './retirement.js';
import { Slots } from './slots.js';

const started: Retirement[] = [];
afterEach(() => {
  for (const retirement of started.splice(0)) retirement.stop();
});

function retiring(
  slots: Slots,
  terms: { maxIdleMs?: number; maxLifetimeMs?: number },
  mustStay = () => false,
) {
  const reasons: string[] = [];
  const retire = (why: string) => reasons.push(why);
  const retirement = new Retirement({ ...terms, slots, mustStay, retire });
  started.push(retirement);
  return { retirement, reasons };
}

it('R-WO13: is idle from the end of the last task on, however long that took', async () => {
  const slots = new Slots(2);
  const { retirement, reasons } = retiring(slots, { maxIdleMs: 30 });
  slots.take();
  retirement.start();
  await delay(100);
  expect(reasons).toEqual([]);
  const endedAt = performance.now();
  slots.giveBack();
  await until('it to retire', () => reasons.length > 0);
  expect(performance.now() - endedAt).toBeGreaterThanOrEqual(30);
  expect(reasons).toEqual(['nothing to do for too long']);
});

it('R-WO13: a lifetime ends whatever runs', async () => {
  const slots = new Slots(1);
  slots.take();
  const { retirement, reasons } = retiring(slots, { maxIdleMs: 10, maxLifetimeMs: 30 });
  retirement.start();
  await until('it to retire', () => reasons.length > 0);
  expect(reasons).toEqual(['its lifetime is over']);
});

it('R-WO13: months do not pass at once, and a worker that stops does not retire as well', async () => {
  const { retirement, reasons } = retiring(new Slots(1), { maxLifetimeMs: 1e10 });
  retirement.start();
  const stopped = retiring(new Slots(1), { maxIdleMs: 5 });
  stopped.retirement.start();
  stopped.retirement.stop();
  await delay(30);
  expect([...reasons, ...stopped.reasons]).toEqual([]);
});

it('R-WO9: who can not reach its server, or has results left, is not idle', async () => {
  let isAway = true;
  const { retirement, reasons } = retiring(new Slots(1), { maxIdleMs: 20 }, () => isAway);
  retirement.start();
  await delay(100);
  expect(reasons).toEqual([]);
  isAway = false;
  await until('it to retire', () => reasons.length > 0);
});
