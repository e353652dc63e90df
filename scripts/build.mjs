// src → dist: compiled modules, the assets beside them, an executable bin, the dashboard's files for browsers, and the
// data image that every new embedded database starts from. Silent when all is well.
// --unchecked: types are checked by somebody else.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { buildDashboard, dashboardFolder } from './dashboard-bundle.mjs';

process.chdir(join(import.meta.dirname, '..'));

const buildInfo = 'dist/.tsbuildinfo';
const notShipped = /\.(test|contract)\.ts$/;
const asset = /\.(sql|lua)$/;
const imageFolder = 'dist/store/embedded';
const makesImage = /store.(embedded.*|migrate)\.js$/;

const startedAt = new Date();
const sources = filesUnder('src');
const modules = sources.filter(
  (path) => path.endsWith('.ts') && !notShipped.test(path) && !path.startsWith('src/dashboard/'),
);
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
await buildDashboard();
if (compiler.status === 0) await buildImage();
if (compiler.status === 0) utimesSync(buildInfo, startedAt, startedAt);
process.exitCode = compiler.status ?? 1;

/** Takes seconds, so one that fits stays: its name says what it was made from, its age which code made it. */
async function buildImage() {
  const { shippedImagePath } = await import('../dist/store/embedded/find-image.js');
  const path = relative('.', shippedImagePath());
  const images = filesUnder(imageFolder).filter((found) => found.endsWith('.image'));
  for (const other of images) if (other !== path) rmSync(other);
  const makers = modules.map(compiled).filter((module) => makesImage.test(module));
  if (existsSync(path) && makers.every((maker) => changedAt(maker) < changedAt(path))) return;
  const { makeImage } = await import('../dist/store/embedded/make-image.js');
  writeFileSync(path, await makeImage());
}

function changedAt(path) {
  return statSync(path).mtimeMs;
}

/** tsc neither deletes what lost its source nor notices that an output it once wrote is gone. */
function removeOrphans() {
  const emitted = modules.flatMap((path) =>
    ['.js', '.js.map', '.d.ts'].map((end) => compiled(path).replace(/\.js$/, end)),
  );
  const wanted = new Set([...emitted, ...assets.map(inDist), buildInfo]);
  const isWanted = (path) =>
    wanted.has(path) || path.endsWith('.image') || path.startsWith(dashboardFolder);
  for (const path of filesUnder('dist')) if (!isWanted(path)) rmSync(path);
  if (!emitted.every((path) => existsSync(path))) rmSync(buildInfo, { force: true });
}

function compiled(path) {
  return inDist(path).replace(/\.ts$/, '.js');
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
