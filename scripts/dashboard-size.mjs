// How much a browser loads to show the dashboard, gzipped. Fails above the limit. Needs dist.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { dashboardFiles, dashboardFolder } from './dashboard-bundle.mjs';

const maxBytes = 100_000;

const sizes = Object.values(dashboardFiles()).map((name) => {
  const content = readFileSync(join(import.meta.dirname, '..', dashboardFolder, name));
  return gzipSync(content, { level: 9 }).length;
});
const bytes = sizes.reduce((sum, size) => sum + size, 0);

console.log(
  `dashboard: ${bytes.toLocaleString('en')} bytes gzipped, at most ${maxBytes.toLocaleString('en')}`,
);
process.exitCode = bytes > maxBytes ? 1 : 0;
