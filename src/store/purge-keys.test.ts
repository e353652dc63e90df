import { expect, it } from 'vitest';

import { atSecond, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { purgeKeys } from './purge-keys.js';

describeOnEveryDatabase('purgeKeys', (db) => {
  it('R-ST4: drops keys that expired, a bounded number at a time', async () => {
    await db().query(
      `insert into sluice.idempotency_keys (scope, key, task_id, fingerprint, expires_at)
       select 's', n::text, gen_random_uuid(), '', $1::timestamptz + n * interval '1 second'
       from generate_series(1, 5) n`,
      [zero],
    );
    expect(await purgeKeys(db(), 2, atSecond(3))).toBe(2);
    expect(await purgeKeys(db(), 2, atSecond(3))).toBe(1);
    expect(await purgeKeys(db(), 2, atSecond(3))).toBe(0);
    const left = await db().query('select key from sluice.idempotency_keys order by key');
    expect(left).toEqual([{ key: '4' }, { key: '5' }]);
  });
});
