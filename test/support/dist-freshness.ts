import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/** Processes under test run from dist; yesterday's build would be tested in silence. */
export function isDistStale(): boolean {
  const builtFrom = join(root, 'dist/.tsbuildinfo');
  if (!existsSync(builtFrom)) return true;
  const builtAtMs = statSync(builtFrom).mtimeMs;
  return readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.(test|contract)\.ts$/.test(entry.name))
    .some((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs > builtAtMs);
}
