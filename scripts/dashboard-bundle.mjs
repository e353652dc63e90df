// src/dashboard → dist/dashboard: one script and one style sheet, named after their content, and a list of both.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');
export const dashboardFolder = join('dist', 'dashboard');

export async function buildDashboard() {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: { app: 'src/dashboard/main.tsx' },
    outdir: dashboardFolder,
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    // light-dark() stays: lowered, the switch between the themes would not work.
    supported: { nesting: true },
    tsconfig: 'src/dashboard/tsconfig.json',
    legalComments: 'none',
    logLevel: 'warning',
    write: false,
  });
  const folder = join(root, dashboardFolder);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const named = (end) => outputFiles.find(({ path }) => path.endsWith(end));
  const files = { script: named('.js'), style: named('.css') };
  for (const { path, contents } of Object.values(files)) {
    writeFileSync(join(folder, basename(path)), contents);
  }
  const names = Object.entries(files).map(([kind, { path }]) => [kind, basename(path)]);
  writeFileSync(
    join(folder, 'files.json'),
    `${JSON.stringify(Object.fromEntries(names), null, 2)}\n`,
  );
}

/** The names of the files that were built last. */
export function dashboardFiles() {
  return JSON.parse(readFileSync(join(root, dashboardFolder, 'files.json'), 'utf8'));
}
