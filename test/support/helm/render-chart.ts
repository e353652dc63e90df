import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { ensureDebianFile } from '../services/server-program.js';
import { runProgram } from '../services/run-program.js';

export interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const source = join(import.meta.dirname, 'main.go');
const cache = join(import.meta.dirname, '../../../node_modules/.cache/render-chart');
const program = join(cache, 'render-chart');
/** The libraries that Debian's packages bring. */
const goEnv = {
  GO111MODULE: 'off',
  GOPATH: '/usr/share/gocode',
  GOCACHE: join(cache, 'go-build'),
};

/** What a chart becomes with these values. Throws what the chart refuses them with. */
export function renderChart(chart: string, values: object): readonly Rendered[] {
  build();
  const asked = { values, release: 'demo', namespace: 'jobs' };
  const { status, stdout, stderr } = spawnSync(program, [chart], {
    input: JSON.stringify(asked),
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as Rendered | null)
    .filter((document) => document !== null);
}

/** Helm itself is in no package of Debian and none of npm; its templates are Go's, with a library that is. */
function build(): void {
  if (existsSync(program) && statSync(program).mtimeMs > statSync(source).mtimeMs) return;
  mkdirSync(cache, { recursive: true });
  const libraries = join(goEnv.GOPATH, 'src');
  ensureDebianFile(
    `${libraries}/github.com/Masterminds/sprig`,
    'golang-github-masterminds-sprig-dev',
  );
  ensureDebianFile(`${libraries}/sigs.k8s.io/yaml`, 'golang-k8s-sigs-yaml-dev');
  const go = { program: 'go', debianPackage: 'golang-go' };
  const { ok, output } = runProgram(go, ['build', '-o', program, source], { env: goEnv });
  if (!ok) throw new Error(output);
}
