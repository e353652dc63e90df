import type { Database } from '../database.js';
import { migrate } from '../migrate.js';
import { openLite, startParameters } from './open-lite.js';
import { packImage, unpackImage, type DataImage } from './image-file.js';
import { SavedMemoryFiles } from './memory-files.js';

/**
 * A database with the schema and nothing of one user. Every new data folder starts as a copy of it, so it
 * holds nothing random: the installation gets its id when somebody asks for it (`findInstallationId`).
 */
export async function makeImage(): Promise<DataImage> {
  return saveImage(null, async (db) => {
    await migrate(db);
    await db.run('delete from sluice.installation');
    // Two thirds of the files that every copy would write, and nothing opens these databases.
    await db.run("update pg_database set datistemplate = false where datname like 'template%'");
    await db.run('drop database template0');
    await db.run('drop database template1');
    await db.run('vacuum full freeze');
  });
}

/** What a clean shutdown leaves of a database in memory after `work`. Null: a database that initdb has just made. */
export async function saveImage(
  from: DataImage | null,
  work: (db: Database) => Promise<void>,
): Promise<DataImage> {
  const files = new SavedMemoryFiles(from === null ? null : unpackImage(from));
  const db = await openLite({
    fs: files,
    // One segment instead of 16 MB; a running database needs few, since it checkpoints every 64 MB.
    initDbStartParams: ['--wal-segsize=1'],
    startParams: [...startParameters, '-c', 'wal_recycle=off'],
  });
  try {
    await work(db);
    await db.run('checkpoint');
  } finally {
    await db.close();
  }
  return packImage(files.saved);
}
