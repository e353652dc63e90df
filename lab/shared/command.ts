import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Lab } from './lab.js';
import { describeMachine, printRows, Results, type Measurements } from './results.js';
import type { Row, Scenario } from './scenario.js';

export interface LabCommand extends Measurements {
  readonly scenarios: readonly Scenario[];
  /** What `--long` adds; absent: there is no such flag. */
  readonly long?: string;
}

interface Flags {
  readonly only: readonly string[];
  readonly quick: boolean;
  readonly long: boolean;
  readonly write: boolean;
}

/** `npm run NAME -- …`: runs the scenarios, prints their tables and keeps their numbers. */
export async function runLab(command: LabCommand): Promise<void> {
  // Children notice that their channel is closed; a guard ends each throw-away server.
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  process.exitCode = await main(command);
}

async function main(command: LabCommand): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      quick: { type: 'boolean', default: false },
      long: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    printHelp(command);
    return 0;
  }
  const complaint = complaintAbout(command, values);
  if (complaint !== null) return refuse(complaint);
  if (!isBuilt()) return refuse('dist could not be built.');

  const results = new Results(command, namesOf(command), values.quick);
  const missed = await runAll(command, values, results);
  if (values.write) await results.writeDocument();
  console.log(
    `${missed === 0 ? 'Nothing was missed' : `${missed} missed`}. Numbers: ${results.path}`,
  );
  return missed === 0 ? 0 : 1;
}

function complaintAbout(command: LabCommand, { only, quick, long, write }: Flags): string | null {
  const names = namesOf(command);
  const unknown = only.filter((name) => !names.includes(name));
  if (unknown.length > 0)
    return `There is no ${unknown.join(', ')}; there are ${names.join(', ')}.`;
  if (write && quick) return 'A quick run measures nothing worth writing down.';
  if (long && command.long === undefined) return 'There is no longer run than the whole one.';
  return null;
}

async function runAll(command: LabCommand, flags: Flags, results: Results): Promise<number> {
  await using lab = await Lab.open(flags);
  const rows: Row[] = [];
  const chosen = command.scenarios.filter(
    ({ name }) => flags.only.length === 0 || flags.only.includes(name),
  );
  for (const { name, about, run } of chosen) {
    lab.progress.say(`${name}: ${about}`);
    const found = await run(lab);
    printRows(found);
    results.keep({
      name,
      about,
      measuredAt: new Date().toISOString().slice(0, 10),
      machine: describeMachine(),
      rows: found,
    });
    rows.push(...found);
  }
  return rows.filter(({ verdict }) => verdict === 'missed').length;
}

/** The processes run from dist; yesterday's build would be measured in silence. */
function isBuilt(): boolean {
  const build = join(import.meta.dirname, '../../scripts/build.mjs');
  return spawnSync(process.execPath, [build], { stdio: 'inherit' }).status === 0;
}

function printHelp(command: LabCommand): void {
  const { name, long, scenarios } = command;
  const width = Math.max(...namesOf(command).map((one) => one.length));
  const lines = [
    `npm run ${name} -- [--only NAME]… [--quick]${long === undefined ? '' : ' [--long]'} [--write]`,
    '',
    '  --only NAME  one scenario; may be given several times',
    '  --quick      seconds instead of minutes: whether it works, not what it measures',
    ...(long === undefined ? [] : [`  --long       ${long}`]),
    `  --write      the table into docs/${name}-measured.md, with what was measured last of the others`,
    '',
    ...scenarios.map((scenario) => `  ${scenario.name.padEnd(width)}  ${scenario.about}`),
  ];
  console.log(lines.join('\n'));
}

function namesOf({ scenarios }: LabCommand): readonly string[] {
  return scenarios.map(({ name }) => name);
}

function refuse(sentence: string): number {
  console.error(sentence);
  return 2;
}
