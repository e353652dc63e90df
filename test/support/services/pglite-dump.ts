import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { createTemporaryFolder } from './temporary-folder.js';

/** Creating one takes seconds, and forty test files need one: they start from this. */
export async function dumpEmptyPglite(): Promise<{ path: string; remove(): void }> {
  const lite = await PGlite.create();
  const dump = await lite.dumpDataDir('none');
  await lite.close();
  const folder = createTemporaryFolder('sluice-pglite-', undefined);
  const path = join(folder, 'dump.tar');
  writeFileSync(path, new Uint8Array(await dump.arrayBuffer()));
  return {
    path,
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
