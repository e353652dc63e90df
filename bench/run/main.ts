// Sluice beside BullMQ, graphile-worker and pg-boss on one machine: npm run bench -- --help
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Table from 'cli-table3';
import prettier from 'prettier';
import { describeMachine } from '../../lab/shared/results.js';
import { drawRates } from '../chart.js';
import { orderOf } from './contenders.js';
import { help, readFlags, WrongFlag, type Flags } from './flags.js';
import { show, type Run, type Values } from './measures.js';
import { findNode, installPeers, peerVersions, versionOf } from './peers.js';
import { showProgress } from './progress.js';
import { grossRegressions, toRecorded, type Recorded } from './recorded.js';
import {
  composeReport,
  costsGrid,
  goalsGrid,
  ratesGrid,
  toMarkdown,
  withMeasured,
  type Grid,
  type Report,
} from './report.js';
import { runContender } from './run-contender.js';
import { startServices, type Services } from './services.js';

const root = join(import.meta.dirname, '../..');
const documentPath = join(root, 'docs/benchmarks.md');
const chartsPath = join(root, 'docs/benchmarks');
const recordedPath = join(root, 'bench/recorded.json');

// What was started ends with us: contenders by the exit, throw-away servers by their guards.
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
process.exitCode = await main();

async function main(): Promise<number> {
  let flags: Flags | null;
  try {
    flags = readFlags(process.argv.slice(2));
  } catch (error) {
    console.error((error as Error).message);
    if (!(error instanceof WrongFlag)) console.error(`\n${help}`);
    return 2;
  }
  if (flags === null) {
    console.log(help);
    return 0;
  }
  build();
  installPeers();
  const report = await measure(flags);
  print(report);
  if (flags.json !== undefined) await writeJson(flags.json, report);
  if (flags.short) return compareWithRecorded(report, flags);
  if (flags.write) await writeDocuments(report);
  return 0;
}

/** Sluice runs from dist; yesterday's build would be measured in silence. */
function build(): void {
  const { status } = spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('dist could not be built');
}

async function measure(flags: Flags): Promise<Report> {
  const { rounds, sizes } = flags;
  const node = flags.node ?? findNode();
  await using services = await startServices();
  const runs = await runRounds(flags, node, services);
  return composeReport(
    {
      measuredAt: new Date().toISOString().slice(0, 10),
      machine: describeMachine().replace(/, Node .*/, ''),
      versions: { Node: versionOf(node), ...services.versions, ...peerVersions() },
      sizes,
      rounds,
    },
    runs,
  );
}

async function runRounds(flags: Flags, node: string, services: Services): Promise<readonly Run[]> {
  const { rounds, sizes, chosen } = flags;
  const runs: Run[] = [];
  const progress = showProgress(rounds, chosen.length);
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const contender of orderOf(chosen, round)) {
        progress.begin(contender.title, round);
        const outcome = await runContender(contender, { node, sizes, services }, (step) =>
          progress.step(step),
        );
        runs.push({ round, contender: contender.name, ...outcome });
        progress.end(tell(outcome.values));
      }
    }
  } finally {
    progress.stop();
  }
  return runs.toSorted(byPlace(flags));
}

/** As they are listed, whatever order they ran in. */
function byPlace({ chosen }: Flags): (a: Run, b: Run) => number {
  const place = ({ contender }: Run) => chosen.findIndex(({ name }) => name === contender);
  return (a, b) => place(a) - place(b) || a.round - b.round;
}

function tell(values: Values): string {
  const rates = `bulk ${show('bulk', values.bulk)}/s, process ${show('process', values.process)}/s`;
  const times = `${show('startP50', values.startP50)} / ${show('startP99', values.startP99)} ms`;
  return `${rates}, submit ${show('submit', values.submit)}/s, start ${times}`;
}

function print(report: Report): void {
  for (const grid of [ratesGrid(report), costsGrid(report), goalsGrid(report)]) {
    if (grid.length > 1) console.log(toTable(grid));
  }
  const twice = report.runs.filter((run) => run.twice > 0);
  for (const run of twice) {
    console.log(`${run.contender}, round ${run.round + 1}: ${run.twice} tasks began twice`);
  }
}

function toTable([head = [], ...rows]: Grid): string {
  const table = new Table({
    head: [...head],
    style: { head: [], border: [] },
    colWidths: head.map((title) => (title === '' ? null : 20)),
    wordWrap: true,
  });
  table.push(...rows.map((row) => [...row]));
  return table.toString();
}

/** Only a gross regression fails: machines are shared, and a short run is a small one. */
async function compareWithRecorded({ goals }: Report, { write }: Flags): Promise<number> {
  if (write) {
    await writeJson(recordedPath, toRecorded(goals));
    return 0;
  }
  if (!existsSync(recordedPath)) {
    console.log('Nothing is recorded to compare with: npm run bench -- --short --write');
    return 0;
  }
  const recorded = JSON.parse(readFileSync(recordedPath, 'utf8')) as Recorded;
  const worse = grossRegressions(goals, recorded);
  for (const sentence of worse) console.log(sentence);
  return worse.length === 0 ? 0 : 1;
}

async function writeDocuments(report: Report): Promise<void> {
  mkdirSync(chartsPath, { recursive: true });
  const { svg, png } = drawRates(report);
  writeFileSync(join(chartsPath, 'rates.svg'), svg);
  writeFileSync(join(chartsPath, 'rates.png'), png);
  await writeJson(join(chartsPath, 'rounds.json'), report);
  const document = withMeasured(readFileSync(documentPath, 'utf8'), toMarkdown(report));
  writeFileSync(documentPath, await format(document, 'markdown'));
}

async function writeJson(path: string, value: unknown): Promise<void> {
  writeFileSync(path, await format(JSON.stringify(value), 'json'));
}

async function format(text: string, parser: 'json' | 'markdown'): Promise<string> {
  const config = await prettier.resolveConfig(documentPath);
  return prettier.format(text, { ...config, parser });
}
