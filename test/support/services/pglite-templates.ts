import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { migrate } from '../../../src/store/migrate.js';
import { ensurePartitions } from '../../../src/store/partitions.js';
import { openPgliteDatabase } from '../../../src/store/pglite-database.js';
import { daysAhead, type Prepared } from './prepared-days.js';
import { createTemporaryFolder } from './temporary-folder.js';

export interface PgliteTemplates {
  /** Dumps with the schema and its partitions. */
  readonly dumps: Readonly<Record<Prepared, string>>;
  /** The engine's as a data folder, to be copied. */
  readonly dataFolder: string;
}

/** Creating and migrating one takes seconds, and sixty test files need one: they start from these. */
export async function preparePglite(): Promise<PgliteTemplates & { remove(): void }> {
  const folder = createTemporaryFolder('sluice-pglite-', undefined);
  const dataFolder = join(folder, 'data');
  const db = await openPgliteDatabase({ dataDir: dataFolder });
  await migrate(db);
  await ensurePartitions(db, daysAhead.store, null);
  await db.close();

  const lite = await PGlite.create(join(dataFolder, 'postgres'));
  // Nobody opens these, and they are two thirds of the files that each restore would write.
  await lite.exec("update pg_database set datistemplate = false where datname like 'template%'");
  for (const unused of ['template0', 'template1']) await lite.exec(`drop database ${unused}`);
  const dump = async (name: string) => {
    // Whoever starts from it has nothing to recover.
    await lite.exec('checkpoint');
    const path = join(folder, name);
    const content = await lite.dumpDataDir('none');
    writeFileSync(path, new Uint8Array(await content.arrayBuffer()));
    return path;
  };
  const store = await dump('store.tar');
  await lite.query('select sluice.ensure_partitions($1, now())', [daysAhead.engine]);
  const engine = await dump('engine.tar');
  await lite.close();
  return {
    dumps: { store, engine },
    dataFolder,
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
