import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { migrations } from '../migrate.js';
import { isWhole, type DataImage } from './image-file.js';

/**
 * The image that was built with this code. Its name says what it was made from, so one that was made from
 * other migrations or by another PGlite is never found. Null: none fits, it is damaged, or the code runs from
 * source.
 */
export function findShippedImage(): DataImage | null {
  const path = shippedImagePath();
  if (path === null || !existsSync(path)) return null;
  const image = readFileSync(path);
  return isWhole(image) ? image : null;
}

/** Null: the version of PGlite is unknown, as in a bundle. */
export function shippedImagePath(): string | null {
  const pglite = findPgliteVersion();
  if (pglite === null) return null;
  const madeFrom = JSON.stringify([pglite, migrations]);
  const name = createHash('sha256').update(madeFrom).digest('hex').slice(0, 32);
  return join(import.meta.dirname, `${name}.image`);
}

function findPgliteVersion(): string | null {
  try {
    const main = createRequire(import.meta.url).resolve('@electric-sql/pglite');
    const text = readFileSync(join(dirname(main), '..', 'package.json'), 'utf8');
    const { name, version } = JSON.parse(text) as { name?: unknown; version?: unknown };
    return name === '@electric-sql/pglite' && typeof version === 'string' ? version : null;
  } catch {
    return null;
  }
}
