// What a new user does: packs the package, installs it into blank projects with engine-strict, compiles every snippet of
// the pages there and runs them. Needs npm's registry and nothing else. Fails with the output of what failed.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { declarations } from './try-package/assumed.mjs';
import { Project } from './try-package/project.mjs';
import { snippetsOf } from './try-package/snippets.mjs';

const repository = join(import.meta.dirname, '..');
const pages = [
  'README.md',
  ...['guide', 'operations', 'security', 'tracing'].map((name) => `docs/${name}.md`),
];
const snippets = pages.flatMap((page) =>
  snippetsOf(page, readFileSync(join(repository, page), 'utf8')),
);
/** The other tools are those of this repository. */
const jest = ['jest@30.5.2', 'ts-jest@29.4.15'];
const tool = (name) => `${name}@${versionOf(name)}`;

/** As `npx tsc --init` has it, as far as it matters here. */
const compilerOptions = {
  module: 'nodenext',
  target: 'es2023',
  lib: ['es2023', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  outDir: 'out',
};

const startedAt = performance.now();
const root = mkdtempSync(join(tmpdir(), 'sluice-try-'));
const tarball = pack();
const serving = {};
serving.ready = new Promise((resolve, reject) => Object.assign(serving, { resolve, reject }));
serving.ready.catch(() => undefined);
const background = [];

const tried = await Promise.allSettled([
  tryEsm(),
  inTurn([tryJest, tryCommonJs, tryVitest, tryBundler]),
]);
for (const child of background) child.kill('SIGKILL');
const failures = tried.filter(({ status }) => status === 'rejected');
for (const { reason } of failures) console.log(reason.message);
if (failures.length > 0) {
  console.log(`Failed. The projects are left in ${root}`);
  process.exitCode = 1;
} else {
  rmSync(root, { recursive: true });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  console.log(`The package works in every project: ${snippets.length} snippets, ${seconds} s`);
}

async function inTurn(tries) {
  for (const one of tries) await one();
}

function pack() {
  const stdio = ['ignore', 'pipe', 'inherit'];
  const options = { cwd: repository, encoding: 'utf8', stdio };
  execFileSync(process.execPath, ['scripts/build.mjs', '--unchecked'], options);
  const packing = ['pack', '--json', '--loglevel=error', '--pack-destination', root];
  const [{ filename, size, unpackedSize }] = JSON.parse(execFileSync('npm', packing, options));
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  console.log(`${filename}: ${megabytes(size)}, unpacked ${megabytes(unpackedSize)}`);
  return join(root, filename);
}

function versionOf(name) {
  return JSON.parse(readFileSync(join(repository, 'node_modules', name, 'package.json'), 'utf8'))
    .version;
}

/** Writes the snippets of a project, for the server that runs. */
function writeSnippets(project, url = 'http://127.0.0.1:7700') {
  const own = snippets.filter((snippet) => snippet.project === project.name);
  if (own.length === 0) throw new Error(`No page has a snippet for ${project.name}`);
  for (const { name, code } of own) {
    project.write(name, code.replaceAll('http://127.0.0.1:7700', url));
  }
  return own;
}

/** Every snippet is compiled; those that need nothing that is not here are run. */
async function tryEsm() {
  const project = new Project(root, 'esm');
  let url;
  try {
    const otel = ['@opentelemetry/api', '@opentelemetry/sdk-trace-node'].map(tool);
    const tools = [tool('zod'), ...otel, tool('typescript'), tool('@types/node')];
    await project.install([tarball, ...tools], { type: 'module' });
    checkLinks(project.path('node_modules/sluice'));
    for (const file of ['assumed.mjs', 'run-snippets.mjs']) {
      cpSync(join(import.meta.dirname, 'try-package', file), project.path(file));
    }
    url = await startServer(project);
    serving.resolve(url);
  } catch (error) {
    serving.reject(error);
    throw error;
  }
  const own = writeSnippets(project, url);
  project.write('globals.d.ts', declarations);
  const typed = own.map(({ name }) => name).filter((name) => name.endsWith('.ts'));
  const examples = readdirSync(project.path('node_modules/sluice/examples'))
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `node_modules/sluice/examples/${name}`);
  project.write('tsconfig.json', { compilerOptions, files: ['globals.d.ts', ...typed] });
  await project.run(`tsc, ${typed.length} snippets`, 'tsc', ['-p', '.']);
  const unwritten = { ...compilerOptions, noEmit: true, skipLibCheck: true };
  project.write('tsconfig.examples.json', { compilerOptions: unwritten, files: examples });
  await project.run('tsc, examples', 'tsc', ['-p', 'tsconfig.examples.json']);
  const runnable = own.filter(({ runs }) => runs).map(({ name }) => `out/${name.slice(0, -3)}.js`);
  await project.run(`run ${runnable.length} snippets`, 'node', ['run-snippets.mjs', ...runnable]);
  await prints('HELLO', project.run('plain JavaScript', 'node', ['plain.mjs']));
}

/** As `npm init` makes it. */
async function tryCommonJs() {
  const project = new Project(root, 'commonjs');
  const tools = [tool('zod'), tool('typescript'), tool('tsx'), tool('@types/node')];
  await project.install([tarball, ...tools], { type: 'commonjs' });
  writeSnippets(project);
  const quickstart = project.path('node_modules/sluice/examples/quickstart.ts');
  cpSync(quickstart, project.path('quickstart.mts'));
  await prints('4 words', project.run('README, by tsx', 'tsx', ['quickstart.mts']));
  await prints('HELLO', project.run('require', 'node', ['plain.js']));
  const required = "const { defineTask, Sluice } = require('sluice');";
  const plain = readFileSync(project.path('plain.js'), 'utf8');
  project.write(
    'typed.ts',
    plain.replace(required, "import { defineTask, Sluice } from 'sluice';"),
  );
  // The way of TypeScript 5 for CommonJS, which does not look at "exports".
  const older = { module: 'commonjs', moduleResolution: 'node10', ignoreDeprecations: '6.0' };
  for (const options of [older, {}]) {
    const tsconfig = { compilerOptions: { ...compilerOptions, ...options }, files: ['typed.ts'] };
    project.write('tsconfig.json', tsconfig);
    await project.run(`tsc, module ${options.module ?? 'nodenext'}`, 'tsc', ['-p', '.']);
  }
  await prints('HELLO', project.run('what tsc made of it', 'node', ['out/typed.js']));
}

async function tryJest() {
  const project = new Project(root, 'jest');
  const tools = [...jest, tool('typescript'), tool('@types/node')];
  await project.install([tarball, ...tools], { type: 'module' });
  writeSnippets(project);
  const test = readFileSync(project.path('shout.test.ts'), 'utf8');
  project.write('shout.test.mjs', test.replace('let sluice: Sluice;', 'let sluice;'));
  project.write('tsconfig.json', { compilerOptions });
  const env = { NODE_OPTIONS: '--experimental-vm-modules' };
  await prints('Tests:       2 passed', project.run('jest', 'jest', [], env));
}

async function tryVitest() {
  const project = new Project(root, 'vitest');
  const tools = [tool('vitest'), tool('vite'), tool('typescript'), tool('@types/node')];
  await project.install([tarball, ...tools], { type: 'module' });
  const [{ name }] = writeSnippets(project);
  const checked = { ...compilerOptions, skipLibCheck: true, noEmit: true };
  project.write('tsconfig.json', { compilerOptions: checked, files: [name] });
  await project.run('tsc', 'tsc', ['-p', '.']);
  await prints('1 passed', project.run('vitest', 'vitest', ['run'], { NO_COLOR: '1' }));
}

/** sluice/client without Node, and then without any other package. */
async function tryBundler() {
  const project = new Project(root, 'bundler');
  await project.install([tarball, tool('esbuild'), tool('typescript')], { type: 'module' });
  const url = await serving.ready;
  writeSnippets(project, url);
  const browser = { module: 'esnext', moduleResolution: 'bundler', lib: ['es2023', 'dom'] };
  const checked = { ...compilerOptions, ...browser, types: [], skipLibCheck: true, noEmit: true };
  project.write('tsconfig.json', { compilerOptions: checked, files: ['browser.ts'] });
  await project.run('tsc, with the DOM and without Node', 'tsc', ['-p', '.']);
  cpSync(join(import.meta.dirname, 'try-package/edge.mjs'), project.path('edge.mjs'));
  const options = ['--bundle', '--minify', '--format=esm', '--platform=browser'];
  const esbuild = ['browser.ts', ...options, '--outfile=out/browser.js'];
  await project.run('esbuild for browsers', 'esbuild', esbuild);
  const run = ['--experimental-vm-modules', 'edge.mjs', 'out/browser.js'];
  await prints('12 letters', project.run('the bundle, without Node', 'node', run));

  const alone = new Project(root, 'alone');
  const installed = 'node_modules/sluice';
  cpSync(project.path(installed), alone.path(installed), { recursive: true });
  cpSync(project.path('browser.ts'), alone.path('client.mjs'));
  await prints('12 letters', alone.run('sluice/client, no other package', 'node', ['client.mjs']));
}

/** A server and a worker by the command line of the package. Resolves with the server's address. */
async function startServer(project) {
  const ready = /Sluice is ready at (http:\S+)/;
  const serve = project.start('sluice', ['serve', '--port', '0', '--data', ':memory:'], ready);
  background.push(serve.child);
  const [, url] = await serve.said;
  const work = ['worker', '--module', './assumed.mjs', '--url', url];
  const worker = project.start('sluice', work, /./);
  background.push(worker.child);
  await worker.said;
  return url;
}

async function prints(expected, running) {
  const output = await running;
  if (!output.includes(expected)) {
    throw new Error(`✗ "${expected}" was expected, but it printed:\n${output}`);
  }
}

/** What the pages of the package link to is in it. */
function checkLinks(folder) {
  const markdown = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => /^(docs|examples)?[^/]*(\/.*)?\.md$/.test(name) && !name.includes('node_modules'),
  );
  const missing = markdown.flatMap((page) =>
    [...readFileSync(join(folder, page), 'utf8').matchAll(/\]\(([^)\s#]+)[^)\s]*\)/g)]
      .map(([, target]) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => !existsSync(join(folder, dirname(page), target)))
      .map((target) => `${page} links to ${target}`),
  );
  if (missing.length > 0) throw new Error(`✗ not in the package:\n${missing.join('\n')}`);
}
