import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { atSecond } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { leaveTurn, takeTurn } from './turns.js';

describeOnEveryDatabase('turns', (db) => {
  it('one server holds a turn, until it leaves or falls silent', async () => {
    const [one, other] = [randomUUID(), randomUUID()];
    const take = (holder: string, second: number, name = 'sampling') =>
      takeTurn(db(), { name, holder, leaseMs: 10_000 }, atSecond(second));
    expect(await take(one, 0)).toBe(true);
    expect(await take(other, 5)).toBe(false);
    expect(await take(other, 5, 'another')).toBe(true);
    expect(await take(one, 5)).toBe(true);
    expect(await take(other, 14)).toBe(false);
    expect(await take(other, 16)).toBe(true);
    await leaveTurn(db(), 'sampling', one);
    expect(await take(one, 17)).toBe(false);
    await leaveTurn(db(), 'sampling', other);
    expect(await take(one, 17)).toBe(true);
  });
});
