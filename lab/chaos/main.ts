// Whatever dies, nothing is lost: npm run chaos -- --help
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describeMachine, printRows, Results } from '../shared/results.js';
import { rowsOf } from './report.js';
import { runChaos, scheduleOf, type ChaosOptions, type ChaosRun } from './run.js';
import { describeFault, type EngineKind } from './schedule.js';

const help = `npm run chaos -- [--seed N] [--minutes M] [--faults F] [--engine E] [--dry-run] [--write]

  --seed N      the same seed gives the same faults at the same times (1)
  --minutes M   how long faults are made (10)
  --faults F    how many (20 for each minute)
  --engine E    postgres: 2 servers, Postgres and Redis; replicas: 3 servers and Postgres; embedded: 1 server (postgres)
  --dry-run     only print the schedule
  --write       the table into docs/chaos-measured.md

4 workers run tasks while processes are killed and frozen, Redis is flushed and connections are cut.
Exits with 1 when a task was lost, completed twice, or anything else that is promised was broken.`;

const measurements = {
  name: 'chaos',
  title: 'Chaos, measured',
  preface: `Servers, workers, Postgres (durable) and Redis as processes on one machine, while they are killed
(SIGKILL), frozen (SIGSTOP), flushed and cut off from each other, at times that a seed gives. Leases are
short, so that minutes see hundreds of faults. A checker then compares what the driver was told, what the
workers wrote down and what the database says. How: the README of the lab.`,
};

const engines: readonly EngineKind[] = ['postgres', 'replicas', 'embedded'];
const folder = join(import.meta.dirname, '../results');

interface Wishes extends Omit<ChaosOptions, 'durable' | 'say'> {
  readonly dryRun: boolean;
  readonly write: boolean;
}

process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
process.exitCode = await main();

async function main(): Promise<number> {
  const wishes = readWishes();
  if (typeof wishes === 'number') return wishes;
  const options = { ...wishes, durable: true, say: (line: string) => console.error(line) };
  if (wishes.dryRun) {
    console.log(scheduleOf(options).map(describeFault).join('\n'));
    return 0;
  }
  const build = join(import.meta.dirname, '../../scripts/build.mjs');
  if (spawnSync(process.execPath, [build], { stdio: 'inherit' }).status !== 0) return 2;
  const run = await runChaos(options);
  await tell(wishes, run);
  return run.verdict.findings.length === 0 ? 0 : 1;
}

function readWishes(): Wishes | number {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      minutes: { type: 'string', default: '10' },
      faults: { type: 'string' },
      engine: { type: 'string', default: 'postgres' },
      'dry-run': { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(help);
    return 0;
  }
  const minutes = Number(values.minutes);
  const seed = Number(values.seed);
  const faults = Math.round(Number(values.faults ?? minutes * 20));
  const engine = engines.find((one) => one === values.engine);
  if (engine === undefined || !(minutes > 0) || !Number.isInteger(seed) || !(faults > 0)) {
    console.error(help);
    return 2;
  }
  const { 'dry-run': dryRun, write } = values;
  return { engine, seed, faults, durationMs: minutes * 60_000, dryRun, write };
}

async function tell(wishes: Wishes, run: ChaosRun): Promise<void> {
  const { engine, seed, durationMs, faults } = wishes;
  const minutes = durationMs / 60_000;
  const again = `npm run chaos -- --seed ${seed} --minutes ${minutes} --faults ${faults} --engine ${engine}`;
  const rows = rowsOf(run);
  printRows(rows);
  for (const { rule, detail } of run.verdict.findings) console.log(`${rule}: ${detail}`);
  const path = join(folder, `chaos-${engine}-${seed}.json`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, `${JSON.stringify({ ...wishes, ...plain(run), rows }, null, 2)}\n`);
  const results = new Results(measurements, engines, false);
  results.keep({
    name: engine,
    about: `${faults} faults in ${minutes} minutes: \`${again}\``,
    measuredAt: new Date().toISOString().slice(0, 10),
    machine: describeMachine(),
    rows,
  });
  if (wishes.write) await results.writeDocument();
  const broken = run.verdict.findings.length;
  console.log(`${broken === 0 ? 'Nothing is broken' : `${broken} broken`}. All of it: ${path}`);
  console.log(`Once more: ${again}`);
}

/** Without what is as long as the run. */
function plain({ schedule, history, verdict }: ChaosRun) {
  return { schedule, spans: history.faults, findings: verdict.findings };
}
