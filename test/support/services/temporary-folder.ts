import { chownSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UserIds } from './unprivileged-user.js';

export function createTemporaryFolder(prefix: string, owner: UserIds | undefined): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  if (owner) chownSync(folder, owner.uid, owner.gid);
  return folder;
}
