import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { DataImage } from '../../src/store/embedded/image-file.js';
import { writeImage } from '../../src/store/embedded/write-image.js';
import type { Prepared } from './services/prepared-days.js';

/** Embedded Postgres in memory, with the schema and nothing in it. */
export function freshPglite(prepared: Prepared = 'engine'): { kind: 'pglite'; image: DataImage } {
  const path = inject(prepared === 'store' ? 'pgliteStoreImage' : 'pgliteImage');
  return { kind: 'pglite', image: readFileSync(path) };
}

/** A data folder as a server leaves it that was started once. */
export function createDataFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  writeImage(freshPglite().image, join(path, 'postgres'));
}
