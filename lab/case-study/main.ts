// The published case study, run again: npm run lab -- --help, or sluice lab --help
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import Table from 'cli-table3';
import { Command } from 'commander';
import { withLabOptions, type LabOptions } from '../../src/cli/lab-options.js';
import { startPostgres } from '../../test/support/services/postgres-server.js';
import { Progress } from '../shared/progress.js';
import { describeMachine, printRows } from '../shared/results.js';
import { publishedFleet, type Case, type CaseScenario } from './case.js';
import { writeDocuments, writeJson } from './documents.js';
import { KeptReports, withoutRuns } from './kept-reports.js';
import { compareGrid, seedReport, type Grid, type ScenarioReport } from './report.js';
import { batch } from './scenarios/batch.js';
import { limited } from './scenarios/limited.js';
import { outage } from './scenarios/outage.js';
import { sluice } from './scenarios/sluice.js';
import { spiral } from './scenarios/spiral.js';

const scenarios: readonly CaseScenario[] = [batch, sluice, limited, spiral, outage];
const root = join(import.meta.dirname, '../..');

// Children notice that their channel is closed; a guard ends the throw-away Postgres.
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
await withLabOptions(new Command('sluice lab'))
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .action(async (options: LabOptions) => {
    process.exitCode = await main(options);
  })
  .parseAsync();

async function main(options: LabOptions): Promise<number> {
  build();
  const { timeScale, json, write, only } = options;
  const names = scenarios.map(({ name }) => name);
  const kept = new KeptReports(timeScale, names);
  const reports = await runAll(
    options,
    scenarios.filter(({ name }) => only.length === 0 || only.some((each) => each === name)),
    (report) => kept.keep(report),
  );
  print(compareGrid(reports));
  if (json !== undefined) await writeJson(json, withoutRuns(reports));
  if (write) await writeDocuments(kept.all());
  const rows = reports.flatMap(({ seeds }) => seeds.flatMap((seed) => seed.rows));
  const missed = rows.filter(({ verdict }) => verdict === 'missed').length;
  console.log(`${missed === 0 ? 'Nothing was missed' : `${missed} missed`}. Numbers: ${kept.path}`);
  return missed === 0 ? 0 : 1;
}

/** The processes run from dist; yesterday's build would be measured in silence. */
function build(): void {
  const { status } = spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('dist could not be built');
}

async function runAll(
  options: LabOptions,
  chosen: readonly CaseScenario[],
  keep: (report: ScenarioReport) => void,
): Promise<readonly ScenarioReport[]> {
  const postgres = options.embedded ? null : await startPostgres({ durable: true });
  try {
    const reports: ScenarioReport[] = [];
    for (const scenario of chosen) {
      const report = await runScenario(options, scenario, postgres?.url ?? null);
      keep(report);
      reports.push(report);
    }
    return reports;
  } finally {
    await postgres?.stop();
  }
}

async function runScenario(
  { timeScale, seed, seeds = [seed], tasks }: LabOptions,
  { name, about, run }: CaseScenario,
  postgresUrl: string | null,
): Promise<ScenarioReport> {
  const progress = new Progress();
  const shared = { tasks, timeScale, fleet: publishedFleet, postgresUrl, progress };
  const found: ScenarioReport['seeds'][number][] = [];
  let runs: ScenarioReport['runs'] = {};
  for (const each of seeds) {
    progress.say(`${name}, seed ${each}: ${about}`);
    const one: Case = { ...shared, seed: each };
    const outcome = await run(one);
    printRows(outcome.rows);
    if (found.length === 0) {
      runs = Object.fromEntries(outcome.runs.map(({ title, rans }) => [title, rans]));
    }
    found.push(seedReport(each, outcome.rows, outcome.runs));
  }
  return {
    name,
    about,
    measuredAt: new Date().toISOString().slice(0, 10),
    machine: `${describeMachine()}, ${postgresUrl === null ? 'embedded database' : 'Postgres'}`,
    command: ['sluice lab', ...process.argv.slice(2)].join(' '),
    timeScale,
    seeds: found,
    runs,
  };
}

function print([head = [], ...rows]: Grid): void {
  if (rows.length === 0) return;
  const table = new Table({ head: [...head], style: { head: [], border: [] } });
  table.push(...rows.map((row) => [...row]));
  console.log(table.toString());
}
