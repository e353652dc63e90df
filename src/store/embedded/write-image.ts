import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { unpackImage, type DataImage } from './image-file.js';

/**
 * Makes `folder` with the files of the image. It appears whole, by a rename: a process that dies before
 * leaves `<folder>.new`, which the next one replaces. The caller holds the lock.
 */
export function writeImage(image: DataImage, folder: string): void {
  const draft = `${folder}.new`;
  rmSync(draft, { recursive: true, force: true });
  const { folders, files } = unpackImage(image);
  // Postgres refuses a data folder that others may read.
  mkdirSync(draft, { mode: 0o700 });
  for (const path of folders) mkdirSync(join(draft, path), { mode: 0o700 });
  for (const { path, content } of files) writeFileSync(join(draft, path), content, { mode: 0o600 });
  renameSync(draft, folder);
}
