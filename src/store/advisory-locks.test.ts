import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeOnEveryDatabase } from '../../test/store/support.js';

const folder = join(import.meta.dirname, '..');
const call = /pg_(?:try_)?advisory_\w*lock\w*\((hashtext\('[^']+'\)|\d+|[^)]*)/g;
const written = /^(?:hashtext\('[^']+'\)|\d+)$/;

function locks(): { readonly path: string; readonly key: string }[] {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return paths
    .filter((path) => /\.(?:ts|sql)$/.test(path) && !path.endsWith('.test.ts'))
    .flatMap((path) => {
      const text = readFileSync(join(folder, path), 'utf8');
      return [...text.matchAll(call)].map(([, key = '']) => ({ path, key }));
    });
}

describeOnEveryDatabase('advisory locks', (db) => {
  it('say in the statement itself which one they are', () => {
    expect(locks().filter(({ key }) => !written.test(key))).toEqual([]);
    expect(locks().length).toBeGreaterThan(5);
  });

  it('are of one file each, so that no two purposes wait for one another', async () => {
    const keys = [...new Set(locks().map(({ key }) => key))];
    const shared = keys.filter(
      (key) => new Set(locks().flatMap((lock) => (lock.key === key ? [lock.path] : []))).size > 1,
    );
    expect(shared).toEqual([]);
    const [row] = await db().query<Record<string, unknown>>(
      `select ${keys.map((key, n) => `(${key})::text as k${n}`).join(', ')}`,
    );
    expect(new Set(Object.values(row ?? {})).size).toBe(keys.length);
  });
});
