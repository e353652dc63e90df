import { readFileSync } from 'node:fs';
import { inject } from 'vitest';

/** Embedded Postgres in memory, empty, for `openEngine`. */
export function freshPglite(): { kind: 'pglite'; restoreFrom: Blob } {
  return { kind: 'pglite', restoreFrom: new Blob([readFileSync(inject('pgliteDump'))]) };
}
