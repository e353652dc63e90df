import { cpSync, readFileSync } from 'node:fs';
import { inject } from 'vitest';
import type { Prepared } from './services/prepared-days.js';

/** Embedded Postgres in memory, with the schema and nothing in it. */
export function freshPglite(prepared: Prepared = 'engine'): { kind: 'pglite'; restoreFrom: Blob } {
  const dump = readFileSync(inject(prepared === 'store' ? 'pgliteStoreDump' : 'pgliteDump'));
  return { kind: 'pglite', restoreFrom: new Blob([dump]) };
}

/** A data folder as a server leaves it that was started once: the first start takes seconds. */
export function createDataFolder(path: string): void {
  cpSync(inject('pgliteDataFolder'), path, { recursive: true });
}
