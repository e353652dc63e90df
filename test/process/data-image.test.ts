import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

import { expect, inject, it, onTestFinished } from 'vitest';

import { shippedImagePath } from '../../src/store/embedded/find-image.js';
import { latestVersion } from '../../src/store/migrate.js';

const root = join(import.meta.dirname, '../..');
const opener = join(import.meta.dirname, 'fixtures/open-new-folder.mjs');

interface Opened {
  readonly beganMs: number;
  readonly migrations: readonly { readonly version: number; readonly appliedMs: number }[];
}

it('a first open runs neither initdb nor migrations: it copies the image of the package', async () => {
  expect(inject('distIsStale')).toBe(false);
  const shipped = readdirSync(join(root, 'dist/store/embedded'));
  const images = shipped.filter((name) => name.endsWith('.image'));
  expect(images).toEqual([basename(shippedImagePath() ?? '')]);
  const { beganMs, migrations } = await openNewFolder(join(root, 'dist'));
  expect(migrations.map(({ version }) => version)).toContain(latestVersion);
  expect(migrations.filter(({ appliedMs }) => appliedMs >= beganMs)).toEqual([]);
});

it('an image that was made from other migrations is not used', async () => {
  const copy = temporaryFolder();
  cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(copy, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  const later = latestVersion + 1;
  writeFileSync(
    join(copy, `dist/store/migrations/${String(later).padStart(4, '0')}-later.sql`),
    'create table sluice.later (id integer);',
  );
  const { beganMs, migrations } = await openNewFolder(join(copy, 'dist'));
  expect(migrations.map(({ version }) => version)).toContain(later);
  expect(migrations.filter(({ appliedMs }) => appliedMs < beganMs)).toEqual([]);
});

async function openNewFolder(dist: string): Promise<Opened> {
  const dataDir = join(temporaryFolder(), 'data');
  const { stdout } = await promisify(execFile)(process.execPath, [opener, dist, dataDir]);
  return JSON.parse(stdout) as Opened;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-image-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
