// src → dist: compiled modules, the assets beside them, an executable bin. Silent when all is well.
// --unchecked: types are checked by somebody else.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  utimesSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

process.chdir(join(import.meta.dirname, '..'));

const buildInfo = 'dist/.tsbuildinfo';
const notShipped = /\.(test|contract)\.ts$/;
const asset = /\.(sql|lua)$/;

const startedAt = new Date();
const sources = filesUnder('src');
const modules = sources.filter((path) => path.endsWith('.ts') && !notShipped.test(path));
const assets = sources.filter((path) => asset.test(path));

removeOrphans();
const compiler = spawnSync(
  process.execPath,
  [
    ...['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'],
    ...(process.argv.includes('--unchecked') ? ['--noCheck'] : []),
  ],
  { stdio: 'inherit' },
);
for (const path of assets) {
  mkdirSync(dirname(inDist(path)), { recursive: true });
  copyFileSync(path, inDist(path));
}
if (existsSync('dist/cli/main.js')) chmodSync('dist/cli/main.js', 0o755);
if (compiler.status === 0) utimesSync(buildInfo, startedAt, startedAt);
process.exitCode = compiler.status ?? 1;

/** tsc neither deletes what lost its source nor notices that an output it once wrote is gone. */
function removeOrphans() {
  const emitted = modules.flatMap((path) =>
    ['.js', '.js.map', '.d.ts'].map((end) => inDist(path).replace(/\.ts$/, end)),
  );
  const wanted = new Set([...emitted, ...assets.map(inDist), buildInfo]);
  for (const path of filesUnder('dist')) if (!wanted.has(path)) rmSync(path);
  if (!emitted.every((path) => existsSync(path))) rmSync(buildInfo, { force: true });
}

function inDist(path) {
  return join('dist', path.slice('src/'.length));
}

function filesUnder(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
