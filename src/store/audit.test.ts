import { expect, it } from 'vitest';

import { atSecond } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { thisProcess, type AuditAction } from '../domain/audit.js';
import { insertAuditEntry, listAudit, purgeAudit } from './audit.js';
import type { Database } from './database.js';
import { maxScannedRows } from './task-walk.js';

const key = { ...thisProcess, kind: 'key', keyId: 'k1', keyName: 'ops', address: '::1' } as const;

async function add(
  db: Database,
  second: number,
  action: AuditAction,
  subject: string,
  actor = thisProcess,
) {
  const changes = { rate: { from: null, to: second } };
  await insertAuditEntry(db, { actor, action, subject, changes, details: {} }, atSecond(second));
}

describeOnEveryDatabase('R-OB12: the audit', (db) => {
  it('is listed newest first, page by page', async () => {
    for (const second of [1, 2, 2, 2, 3]) await add(db(), second, 'queue.put', 'q');
    const seconds: unknown[] = [];
    let cursor: string | undefined;
    do {
      const page: Awaited<ReturnType<typeof listAudit>> = await listAudit(
        db(),
        {},
        { limit: 2, ...(cursor === undefined ? {} : { cursor }) },
      );
      seconds.push(...page.items.map(({ changes }) => changes.rate?.to));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(seconds).toEqual([3, 2, 2, 2, 1]);
    await expect(listAudit(db(), {}, { cursor: 'bm8' })).rejects.toMatchObject({
      code: 'invalid_request',
    });
  });

  it('is found by who, what and when', async () => {
    await add(db(), 1, 'queue.put', 'q');
    await add(db(), 2, 'limit.put', 'l', key);
    await add(db(), 3, 'queue.pause', 'q', { ...key, kind: 'session', sessionId: 's1' });
    const found = async (filter: Parameters<typeof listAudit>[1]) =>
      (await listAudit(db(), filter, {})).items.map(({ action }) => action);
    expect(await found({ actor: 'k1' })).toEqual(['queue.pause', 'limit.put']);
    expect(await found({ actor: 's1' })).toEqual(['queue.pause']);
    expect(await found({ actor: 'process' })).toEqual(['queue.put']);
    expect(await found({ action: 'limit.put' })).toEqual(['limit.put']);
    expect(await found({ subject: 'q' })).toEqual(['queue.pause', 'queue.put']);
    expect(await found({ from: atSecond(2), to: atSecond(3) })).toEqual(['limit.put']);
    expect((await listAudit(db(), { action: 'limit.put' }, {})).items).toMatchObject([
      { at: atSecond(2), actor: key, subject: 'l', changes: { rate: { from: null, to: 2 } } },
    ]);
  });

  it('reads a bounded part for a filter that matches nothing, and says where to go on', async () => {
    await db().query(
      `insert into sluice.audit (at, actor, action, subject, changes, details)
       select $1::timestamptz, 'process', 'queue.put', 'q', '{}', '{}'
       from generate_series(1, $2::int)`,
      [atSecond(1), maxScannedRows + 10],
    );
    const first = await listAudit(db(), { subject: 'none' }, {});
    expect(first.items).toEqual([]);
    expect(first.nextCursor).not.toBeNull();
    const rest = await listAudit(db(), { subject: 'none' }, { cursor: first.nextCursor ?? '' });
    expect(rest).toEqual({ items: [], nextCursor: null });
  });

  it('is kept for its days', async () => {
    const day = 86_400;
    await add(db(), 0, 'queue.put', 'old');
    await add(db(), 2 * day, 'queue.put', 'new');
    expect(await purgeAudit(db(), 365, 10, atSecond(366 * day))).toBe(1);
    expect((await listAudit(db(), {}, {})).items.map(({ subject }) => subject)).toEqual(['new']);
  });
});
