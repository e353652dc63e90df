import { randomUUID } from 'node:crypto';

import { expect, it } from 'vitest';

import { atSecond, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { leaveServing, renewServing, takeServing } from './serving.js';

const leaseMs = 10_000;
const one = randomUUID();
const two = randomUUID();
const three = randomUUID();

describeOnEveryDatabase('serving', (db) => {
  it('R-CH12: one serves, the other is told who', async () => {
    expect(await takeServing(db(), one, 'memory', leaseMs, zero)).toEqual({ kind: 'serving' });
    expect(await takeServing(db(), two, 'memory', leaseMs, atSecond(10))).toEqual({
      kind: 'standby',
      holder: one,
      mode: 'memory',
      renewedAt: zero,
      since: zero,
    });
    expect(await takeServing(db(), one, 'memory', leaseMs, atSecond(1))).toEqual({
      kind: 'serving',
    });
  });

  it('R-CH12: the standby takes over when the lease lapses, and the old one is refused', async () => {
    await takeServing(db(), one, 'memory', leaseMs, zero);
    expect(await renewServing(db(), one, atSecond(5))).toBe(true);
    const early = await takeServing(db(), two, 'memory', leaseMs, atSecond(15));
    expect(early.kind).toBe('standby');
    const late = await takeServing(db(), two, 'memory', leaseMs, atSecond(15.001));
    expect(late.kind).toBe('serving');
    expect(await renewServing(db(), one, atSecond(16))).toBe(false);
    expect(await renewServing(db(), two, atSecond(16))).toBe(true);
  });

  it('R-CH12: a standby that saw it renewed, or unchanged for a lease, does not go by the clock', async () => {
    await takeServing(db(), one, 'memory', leaseMs, atSecond(3_600));
    const seen = { renewedAt: atSecond(3_600) };
    const ask = (state: 'alive' | 'gone', renewedAt: Date, second: number) =>
      takeServing(db(), two, 'memory', leaseMs, atSecond(second), undefined, { state, renewedAt });
    // Set forward by an hour; set back by an hour, and renewed since.
    expect((await ask('alive', seen.renewedAt, 7_200)).kind).toBe('standby');
    expect((await ask('gone', atSecond(3_598), 0)).kind).toBe('standby');
    expect((await ask('gone', seen.renewedAt, 0)).kind).toBe('serving');
    expect(await renewServing(db(), one, atSecond(0))).toBe(false);
  });

  it('a lapsed lease that nobody took is still renewed', async () => {
    await takeServing(db(), one, 'memory', leaseMs, zero);
    expect(await renewServing(db(), one, atSecond(60))).toBe(true);
  });

  it('whoever leaves lets the next one in at once', async () => {
    await takeServing(db(), one, 'memory', leaseMs, zero);
    await leaveServing(db(), two);
    expect((await takeServing(db(), two, 'memory', leaseMs, zero)).kind).toBe('standby');
    await leaveServing(db(), one);
    expect((await takeServing(db(), two, 'memory', leaseMs, zero)).kind).toBe('serving');
  });

  it('R-CH12: with Redis all serve at once, and one without it does not', async () => {
    expect((await takeServing(db(), one, 'redis', leaseMs, zero)).kind).toBe('serving');
    expect((await takeServing(db(), two, 'redis', leaseMs, zero)).kind).toBe('serving');
    const third = await takeServing(db(), randomUUID(), 'memory', leaseMs, zero);
    expect(third).toMatchObject({ kind: 'standby', mode: 'redis' });
  });

  it('R-CH12: with Redis each renews for all', async () => {
    await takeServing(db(), one, 'redis', leaseMs, zero);
    await takeServing(db(), two, 'redis', leaseMs, atSecond(5));
    const early = await takeServing(db(), three, 'memory', leaseMs, atSecond(15));
    expect(early).toMatchObject({ kind: 'standby', mode: 'redis', renewedAt: atSecond(5) });
    const again = await takeServing(db(), one, 'redis', leaseMs, atSecond(15));
    expect(again.kind).toBe('serving');
  });

  it('R-CH12: whoever leaves with Redis lets nobody in while others may serve', async () => {
    await takeServing(db(), one, 'redis', leaseMs, zero);
    await takeServing(db(), two, 'redis', leaseMs, zero);
    await leaveServing(db(), two);
    const early = await takeServing(db(), three, 'memory', leaseMs, atSecond(10));
    expect(early).toMatchObject({ kind: 'standby', mode: 'redis' });
    const other = await takeServing(db(), one, 'redis', leaseMs, atSecond(10));
    expect(other.kind).toBe('serving');
  });

  it('R-CH12: when all with Redis are gone one without takes over, and they wait', async () => {
    await takeServing(db(), one, 'redis', leaseMs, zero);
    const third = await takeServing(db(), three, 'memory', leaseMs, atSecond(10.001));
    expect(third.kind).toBe('serving');
    const back = await takeServing(db(), one, 'redis', leaseMs, atSecond(11));
    expect(back).toMatchObject({ kind: 'standby', holder: three, mode: 'memory' });
    expect(await renewServing(db(), one, atSecond(11))).toBe(false);
  });

  it('R-CH12: a server with Redis takes over from one without when its turn lapsed', async () => {
    await takeServing(db(), one, 'memory', leaseMs, zero);
    const early = await takeServing(db(), two, 'redis', leaseMs, atSecond(10));
    expect(early).toMatchObject({ kind: 'standby', mode: 'memory' });
    const late = await takeServing(db(), two, 'redis', leaseMs, atSecond(10.001));
    expect(late.kind).toBe('serving');
    expect(await renewServing(db(), one, atSecond(11))).toBe(false);
  });

  it('R-CH12: whoever comes with another Redis waits until the others are gone', async () => {
    const at = (place: string | null, isServing = false) => ({ place, isServing });
    const take = async (holder: string, second: number, shared: ReturnType<typeof at>) =>
      (await takeServing(db(), holder, 'redis', leaseMs, atSecond(second), shared)).kind;
    expect(await take(one, 0, at('a'))).toBe('serving');
    expect(await take(two, 1, at('a'))).toBe('serving');
    expect(await take(three, 2, at('b'))).toBe('standby');
    // It can't be asked now.
    expect(await take(three, 3, at(null))).toBe('serving');
    expect(await take(randomUUID(), 4, at('b'))).toBe('standby');
    // Flushed: those who serve name it anew, and the others are let in again.
    expect(await take(one, 5, at('b', true))).toBe('serving');
    expect(await take(two, 6, at('b'))).toBe('serving');
    expect(await take(three, 6, at('c'))).toBe('standby');
    expect(await take(three, 16.001, at('c'))).toBe('serving');
    // Others of its Redis may still serve.
    await leaveServing(db(), three);
    expect(await take(one, 17, at('a'))).toBe('standby');
    expect(await take(two, 18, at('c'))).toBe('serving');
    expect(await take(one, 28.001, at('a'))).toBe('serving');
  });
});

describeOnPostgres('serving at once', (postgres) => {
  it('R-CH12: of many that start, and of many that take over, one serves', async () => {
    const db = await postgres().openPatient(8);
    for (const second of [0, 60, 120]) {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () =>
          takeServing(db, randomUUID(), 'memory', leaseMs, atSecond(second)),
        ),
      );
      expect(answers.filter((answer) => answer.kind === 'serving')).toHaveLength(1);
    }
  });

  it('R-CH12: of many with Redis and without, all of one kind or one of the other serve', async () => {
    const db = await postgres().openPatient(8);
    for (const second of [0, 60, 120, 180]) {
      const now = atSecond(second);
      const modes = Array.from({ length: 8 }, (_, n) => (n % 2 === 0 ? 'memory' : 'redis'));
      const answers = await Promise.all(
        modes.map(async (mode) => {
          const { kind } = await takeServing(db, randomUUID(), mode, leaseMs, now);
          return kind === 'serving' ? mode : null;
        }),
      );
      const serving = answers.filter((mode) => mode !== null);
      expect([['memory'], ['redis', 'redis', 'redis', 'redis']]).toContainEqual(serving);
    }
  });
});
