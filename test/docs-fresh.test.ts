import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';

it('the generated docs are as the schemas, the errors and the transitions are', () => {
  if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
  const script = join(import.meta.dirname, '../scripts/generate-docs.mjs');
  const { stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' });
  expect(stderr).toBe('');
});
