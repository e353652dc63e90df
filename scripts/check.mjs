// Everything that must hold, in one command: the static checks two at a time, then the tests.
// A failing step does not hide the ones after it. The last line counts them all.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

process.chdir(join(import.meta.dirname, '..'));
const bin = (name) => `node_modules/.bin/${name}`;
const cache = (name) => `node_modules/.cache/${name}`;

const staticSteps = [
  ['build', 'node', 'scripts/build.mjs', '--unchecked'],
  ['types', bin('tsc'), '-p', 'tsconfig.json'],
  ['lint', bin('eslint'), '--cache', '--cache-location', cache('eslint/'), '--max-warnings=0', '.'],
  ['format', bin('prettier'), '--check', '--cache', '--log-level=warn', '.'],
  ['import direction', bin('depcruise'), '--config=.dependency-cruiser.cjs', 'src'],
  ['loaded modules', bin('depcruise'), '--config=.dependency-cruiser.loaded.cjs', 'src'],
  ['dead exports', bin('knip'), '--no-progress'],
];

const counts = { passed: 0, failed: 0, skipped: 0 };
const queue = [...staticSteps];
await Promise.all([runStaticSteps(), runStaticSteps()]);
await runTests();

console.log();
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
process.exitCode = counts.failed > 0 ? 1 : 0;

async function runStaticSteps() {
  for (let step = queue.shift(); step; step = queue.shift()) {
    const [name, command, ...args] = step;
    const { ok, output, seconds } = await run(command, args, ['ignore', 'pipe', 'pipe']);
    report(name, ok, seconds);
    if (!ok) console.log(output.trimEnd());
    counts[ok ? 'passed' : 'failed'] += 1;
  }
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
  console.log(`${ok ? '✓' : '✗'} ${name.padEnd(16)} ${seconds.toFixed(1).padStart(6)} s`);
}

function run(command, args, stdio) {
  const startedAt = performance.now();
  const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : { NO_COLOR: '1' };
  const child = spawn(command, args, { stdio, env: { ...process.env, ...color } });
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
