import { beforeEach, expect, it } from 'vitest';

import { atSecond, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { Scope } from '../domain/scopes.js';
import {
  findKeysChanged,
  insertKey,
  insertSession,
  listKeys,
  noteKeysUsed,
  revokeKey,
  wasAnyKeyMade,
} from './api-keys.js';

const hash = 'a'.repeat(64);
const scopes: readonly Scope[] = ['submit', 'read'];
const key = (id: string) => ({
  id,
  name: `the "${id}", \\{of} mine`,
  hash,
  scopes,
  passesCeilings: true,
  queues: ['gpt-*'],
  ownTasks: false,
  expiresInSeconds: null,
});

describeOnEveryDatabase('API keys', (db) => {
  beforeEach(() => db().run('delete from sluice.api_keys'));

  const keysChanged = async (since: Date | null) => (await findKeysChanged(db(), since, null)).keys;

  it('R-AD6: are found as they were made; the first says that it is', async () => {
    expect(await wasAnyKeyMade(db())).toBe(false);
    const first = await insertKey(db(), key('one'), zero);
    const second = await insertKey(db(), { ...key('two'), expiresInSeconds: 90 }, zero);
    expect([first.isFirst, second.isFirst]).toEqual([true, false]);
    expect(await wasAnyKeyMade(db())).toBe(true);
    const found = await keysChanged(null);
    expect(found).toEqual(
      expect.arrayContaining([
        {
          ...{ id: 'one', name: key('one').name, hash, scopes, passesCeilings: true },
          ...{ queues: ['gpt-*'], ownTasks: false },
          ...{ sessionOf: null, signedInFrom: null, createdAt: zero, expiresAt: null },
          ...{ revokedAt: null, lastUsedAt: null },
        },
        expect.objectContaining({ id: 'two', expiresAt: atSecond(90) }),
      ]),
    );
  });

  it('R-AD6: a revoked one is told to those who look for changes, and to nobody else', async () => {
    await insertKey(db(), key('one'), zero);
    await insertKey(db(), key('two'), zero);
    const revoked = await revokeKey(db(), 'one', atSecond(10));
    expect(revoked).toMatchObject({ id: 'one', revokedAt: atSecond(10) });
    expect(await revokeKey(db(), 'one', atSecond(20))).toEqual(revoked);
    expect(await revokeKey(db(), 'none', atSecond(20))).toBeNull();
    const ids = async (since: Date | null) => (await keysChanged(since)).map(({ id }) => id);
    expect(await ids(null)).toEqual(['two']);
    expect(await ids(atSecond(5))).toEqual(['one']);
    expect(await ids(atSecond(30))).toEqual([]);
  });

  it('are listed in pages, revoked ones too, sessions not', async () => {
    for (const id of ['c', 'a', 'b']) await insertKey(db(), key(id), zero);
    await revokeKey(db(), 'a', zero);
    await insertSession(
      db(),
      { id: 'aa', hash, of: 'b', lifeSeconds: 60, signedInFrom: null },
      zero,
    );
    const one = await listKeys(db(), { limit: 2 });
    expect(one.items.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(one.items[0]).not.toHaveProperty('hash');
    const cursor = one.nextCursor ?? '';
    const two = await listKeys(db(), { limit: 2, cursor });
    expect([two.items.map(({ id }) => id), two.nextCursor]).toEqual([['c'], null]);
  });

  it('R-AD6: a session may what its key may, lives no longer, and ends with it', async () => {
    await insertKey(db(), { ...key('one'), expiresInSeconds: 100 }, zero);
    const session = {
      id: 's',
      hash: 'b'.repeat(64),
      of: 'one',
      lifeSeconds: 1_000,
      signedInFrom: '10.0.0.9',
    };
    expect(await insertSession(db(), session, atSecond(1))).toMatchObject({
      scopes: ['submit', 'read'],
      sessionOf: 'one',
      expiresAt: atSecond(100),
    });
    await revokeKey(db(), 'one', atSecond(2));
    const [ended] = (await keysChanged(zero)).filter(({ id }) => id === 's');
    expect(ended?.revokedAt).toEqual(atSecond(2));
    expect(await insertSession(db(), { ...session, id: 't' }, atSecond(3))).toBeNull();
  });

  it('R-AD6: of one key there are 20 sessions at most, and none is kept long after its end', async () => {
    await insertKey(db(), key('one'), zero);
    for (let n = 0; n < 25; n++) {
      const session = { id: `s${n}`, hash, of: 'one', lifeSeconds: 60, signedInFrom: null };
      await insertSession(db(), session, atSecond(n));
    }
    const living = (await keysChanged(null)).filter(({ id }) => id !== 'one');
    expect(living.map(({ id }) => id).toSorted()).toEqual(
      Array.from({ length: 20 }, (_, n) => `s${n + 5}`).toSorted(),
    );
    const late = { id: 'late', hash, of: 'one', lifeSeconds: 60, signedInFrom: null };
    await insertSession(db(), late, atSecond(3 * 86_400));
    const left = await keysChanged(zero);
    expect(left.map(({ id }) => id).toSorted()).toEqual(['late', 'one']);
  });

  it('R-AD6: being used is noted, never backwards, and is no change', async () => {
    await insertKey(db(), key('one'), zero);
    await noteKeysUsed(db(), [
      { id: 'one', at: atSecond(60) },
      { id: 'gone', at: atSecond(60) },
    ]);
    await noteKeysUsed(db(), [{ id: 'one', at: atSecond(30) }]);
    const { items } = await listKeys(db(), {});
    expect(items[0]?.lastUsedAt).toEqual(atSecond(60));
    expect(await keysChanged(atSecond(1))).toEqual([]);
  });
});
