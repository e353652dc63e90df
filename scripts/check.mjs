// Everything that must hold, in one command: the build, then the tests, and beside them the static checks.
// Tests wait for much, and the static checks take what they leave.
// A failing step does not hide the ones after it. The last line counts them all.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { getPriority, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';

process.chdir(join(import.meta.dirname, '..'));
const bin = (name) => `node_modules/.bin/${name}`;
const cache = (name) => `node_modules/.cache/${name}`;

const build = ['build', 'node', 'scripts/build.mjs', '--unchecked'];
/** The longest first. */
const staticSteps = [
  ['lint', bin('eslint'), '--cache', '--cache-location', cache('eslint/'), '--max-warnings=0', '.'],
  ['types', bin('tsc'), '-p', 'tsconfig.json'],
  ['dashboard types', bin('tsc'), '-p', 'src/dashboard/tsconfig.json'],
  ['format', bin('prettier'), '--check', '--cache', '--log-level=warn', '.'],
  ['import direction', bin('depcruise'), '--config=.dependency-cruiser.cjs', 'src'],
  ['loaded modules', bin('depcruise'), '--config=.dependency-cruiser.loaded.cjs', 'src'],
  ['dead exports', bin('knip'), '--no-progress'],
  ['client size', 'node', 'scripts/client-size.mjs'],
  ['dashboard size', 'node', 'scripts/dashboard-size.mjs'],
];

const failures = [];
const counts = { passed: 0, failed: 0, skipped: 0 };
const queue = [...staticSteps];
await runStep(build);
await Promise.all([runTests(), runStaticSteps(), runStaticSteps()]);

console.log();
if (failures.length > 0) console.log(`Failed: ${failures.join(', ')}`);
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
process.exitCode = counts.failed > 0 ? 1 : 0;

async function runStaticSteps() {
  for (let step = queue.shift(); step; step = queue.shift()) await runStep(step, letOthersPass);
}

function letOthersPass(child) {
  if (child.pid !== undefined) setPriority(child.pid, Math.min(getPriority() + 10, 19));
}

async function runStep([name, command, ...args], onStart) {
  const stdio = ['ignore', 'pipe', 'pipe'];
  const { ok, output, seconds } = await run(command, args, stdio, onStart);
  report(name, ok, seconds);
  if (!ok) console.log(output.trimEnd());
  counts[ok ? 'passed' : 'failed'] += 1;
}

async function runTests() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-check-'));
  const resultFile = join(folder, 'tests.json');
  const { ok, seconds } = await run(
    bin('vitest'),
    [
      ...['run', '--allowOnly=false'],
      ...['--reporter=default', '--reporter=json', `--outputFile.json=${resultFile}`],
    ],
    ['ignore', 'inherit', 'inherit'],
  );
  const tests = readTestResult(resultFile);
  rmSync(folder, { recursive: true });

  if (tests.passed + tests.failed === 0) console.log('No test ran.');
  // vitest also fails for what no test stands for: a rejection that nobody handled, a service
  // that did not start.
  if (tests.failed === 0 && (!ok || tests.passed === 0)) tests.failed = 1;
  report('tests', tests.failed === 0, seconds);
  for (const outcome of Object.keys(counts)) counts[outcome] += tests[outcome];
}

function readTestResult(path) {
  if (!existsSync(path)) return { passed: 0, failed: 0, skipped: 0 };
  const result = JSON.parse(readFileSync(path, 'utf8'));
  const filesNotLoaded = result.testResults.filter(
    (file) =>
      file.status === 'failed' && file.assertionResults.every(({ status }) => status !== 'failed'),
  );
  return {
    passed: result.numPassedTests,
    failed: result.numFailedTests + filesNotLoaded.length,
    skipped: result.numPendingTests + result.numTodoTests,
  };
}

function report(name, ok, seconds) {
  if (!ok) failures.push(name);
  console.log(`${ok ? '✓' : '✗'} ${name.padEnd(16)} ${seconds.toFixed(1).padStart(6)} s`);
}

function run(command, args, stdio, onStart) {
  const startedAt = performance.now();
  const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : { NO_COLOR: '1' };
  const child = spawn(command, args, { stdio, env: { ...process.env, ...color } });
  onStart?.(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => (output += text));
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) =>
      resolve({ ok: code === 0, output, seconds: (performance.now() - startedAt) / 1000 }),
    );
  });
}
