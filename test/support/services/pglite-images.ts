import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeImage, saveImage } from '../../../src/store/embedded/make-image.js';
import { ensurePartitions } from '../../../src/store/partitions.js';
import { daysAhead, type Prepared } from './prepared-days.js';
import { createTemporaryFolder } from './temporary-folder.js';

export interface PgliteImages {
  /** Files with the schema and its partitions. */
  readonly paths: Readonly<Record<Prepared, string>>;
}

/** Making one takes seconds, and sixty test files need one. */
export async function preparePglite(): Promise<PgliteImages & { remove(): void }> {
  const folder = createTemporaryFolder('sluice-pglite-', undefined);
  const empty = await makeImage();
  const save = async (prepared: Prepared): Promise<string> => {
    const path = join(folder, `${prepared}.image`);
    const image = await saveImage(empty, async (db) => {
      await ensurePartitions(db, daysAhead[prepared], null);
    });
    writeFileSync(path, image);
    return path;
  };
  return {
    paths: { store: await save('store'), engine: await save('engine') },
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
