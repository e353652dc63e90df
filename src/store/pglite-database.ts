import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { lockDataFolder } from './data-folder-lock.js';
import type { Database } from './database.js';
import { findShippedImage } from './embedded/find-image.js';
import { unpackImage, type DataImage } from './embedded/image-file.js';
import { makeImage } from './embedded/make-image.js';
import { MemoryFiles } from './embedded/memory-files.js';
import { openLite } from './embedded/open-lite.js';
import { writeImage } from './embedded/write-image.js';

export interface PgliteDatabaseOptions {
  /** Absent: in memory. */
  readonly dataDir?: string;
  /** For tests: what a new database starts from. */
  readonly image?: DataImage;
  /** For tests. */
  readonly checkpointAfterBytes?: number;
}

/** Embedded Postgres. A new database starts as a copy of an image, which has the schema already. */
export async function openPgliteDatabase(options: PgliteDatabaseOptions): Promise<Database> {
  const { dataDir, image, checkpointAfterBytes } = options;
  if (dataDir === undefined) {
    const files = new MemoryFiles(unpackImage(image ?? (await startingImage())));
    return openLite({ fs: files }, { checkpointAfterBytes });
  }
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const unlock = lockDataFolder(dataDir);
  try {
    // A folder of its own: Postgres wants it for itself, and the lock lies beside it.
    const folder = join(dataDir, 'postgres');
    if (!existsSync(folder)) writeImage(image ?? (await startingImage()), folder);
    return await openLite({ dataDir: folder }, { checkpointAfterBytes, onClosed: unlock });
  } catch (error) {
    unlock();
    throw error;
  }
}

let found: Promise<DataImage> | null = null;

/** The one that was shipped if it fits, else one that is made now, once in a process: that takes seconds. */
function startingImage(): Promise<DataImage> {
  found ??= Promise.resolve(findShippedImage() ?? makeImage()).catch((error: unknown) => {
    found = null;
    throw error;
  });
  return found;
}
