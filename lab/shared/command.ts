import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { Lab } from './lab.js';
import { callOf, describeMachine, printRows, Results, type Measurements } from './results.js';
import type { Row, Scenario } from './scenario.js';

export interface LabCommand extends Measurements {
  readonly scenarios: readonly Scenario[];
  /** What `--long` adds; absent: there is no such flag. */
  readonly long?: string;
  /** Flags of its own that take a whole number, by their names. */
  readonly numbers?: Readonly<Record<string, NumberFlag>>;
  /** Flags of its own that take a text, with what it is. */
  readonly texts?: Readonly<Record<string, string>>;
}

export interface NumberFlag {
  readonly about: string;
  /** Unless told otherwise; and in a quick run. */
  readonly whole: number;
  readonly quick: number;
}

interface Flags {
  readonly only: readonly string[];
  readonly quick: boolean;
  readonly long: boolean;
  readonly write: boolean;
  readonly json: string | undefined;
  readonly numbers: Readonly<Record<string, number>>;
  readonly texts: Readonly<Record<string, string>>;
}

/** `npm run NAME -- …`: runs the scenarios, prints their tables and keeps their numbers. */
export async function runLab(command: LabCommand): Promise<void> {
  // Children notice that their channel is closed; a guard ends each throw-away server.
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  process.exitCode = await main(command);
}

async function main(command: LabCommand): Promise<number> {
  let flags: Flags | null;
  try {
    flags = readFlags(command, process.argv.slice(2));
  } catch (error) {
    return refuse(`${(error as Error).message}\n(add --help for what is possible)`);
  }
  if (flags === null) {
    printHelp(command);
    return 0;
  }
  if (!isBuilt()) return refuse('dist could not be built.');

  const results = new Results(command, namesOf(command), flags.quick);
  const missed = await runAll(command, flags, results);
  if (flags.json !== undefined) results.copyTo(flags.json);
  if (flags.write) await results.writeDocument();
  console.log(
    `${missed === 0 ? 'Nothing was missed' : `${missed} missed`}. Numbers: ${results.path}`,
  );
  return missed === 0 ? 0 : 1;
}

/** Null: only help is wanted. */
export function readFlags(command: LabCommand, args: readonly string[]): Flags | null {
  const { numbers = {}, texts = {} } = command;
  const own = Object.keys({ ...numbers, ...texts }).map((name) => [name, { type: 'string' }]);
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true, default: [] },
      quick: { type: 'boolean', default: false },
      long: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      json: { type: 'string' },
      help: { type: 'boolean', default: false },
      ...(Object.fromEntries(own) as Readonly<Record<string, { type: 'string' }>>),
    } satisfies ParseArgsConfig['options'],
  });
  if (values.help) return null;
  const { only, quick, long, write, json } = values;
  refuseContradictions(command, { only, quick, long, write });
  const given = { numbers: readNumbers(command, values), texts: readTexts(command, values) };
  return { only, quick, long, write, json, ...given };
}

function refuseContradictions(
  command: LabCommand,
  { only, quick, long, write }: Pick<Flags, 'only' | 'quick' | 'long' | 'write'>,
): void {
  const names = namesOf(command);
  const unknown = only.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    throw new Error(`There is no ${unknown.join(', ')}; there are ${names.join(', ')}.`);
  }
  if (write && quick) throw new Error('A quick run measures nothing worth writing down.');
  if (long && command.long === undefined) {
    throw new Error('There is no longer run than the whole one.');
  }
}

function readNumbers(
  { numbers = {} }: LabCommand,
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, number>> {
  const read = ([name, { whole, quick }]: readonly [string, NumberFlag]) => {
    const text = values[name];
    if (typeof text !== 'string') return [name, values.quick === true ? quick : whole] as const;
    if (/^[1-9]\d{0,8}$/.test(text)) return [name, Number(text)] as const;
    throw new Error(`--${name} takes a whole number above 0, not ${text}.`);
  };
  return Object.fromEntries(Object.entries(numbers).map(read));
}

function readTexts(
  { texts = {} }: LabCommand,
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, string>> {
  const given = Object.keys(texts).flatMap((name) => {
    const text = values[name];
    return typeof text === 'string' ? [[name, text] as const] : [];
  });
  return Object.fromEntries(given);
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
  const { name, long, numbers = {}, texts = {}, scenarios } = command;
  const flags = [
    ['--only NAME', 'one scenario; may be given several times'],
    ['--quick', 'seconds instead of minutes: whether it works, not what it measures'],
    ...(long === undefined ? [] : [['--long', long]]),
    ...Object.entries(numbers).map(([flag, { about, whole }]) => [
      `--${flag} N`,
      `${about}; ${whole} unless told otherwise`,
    ]),
    ...Object.entries(texts).map(([flag, about]) => [`--${flag} TEXT`, about]),
    ['--json FILE', 'the numbers, every round of them'],
    [
      '--write',
      `the table into docs/${name}-measured.md, with what was measured last of the others`,
    ],
  ];
  const inBrackets = flags.map(([flag = '']) => `[${flag}]${flag.startsWith('--only') ? '…' : ''}`);
  const lines = [
    [callOf(command), ...inBrackets].join(' '),
    '',
    ...columns(flags),
    '',
    ...columns(scenarios.map((scenario) => [scenario.name, scenario.about])),
  ];
  console.log(lines.join('\n'));
}

function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const width = Math.max(...rows.map(([name = '']) => name.length));
  return rows.map(([name = '', about = '']) => `  ${name.padEnd(width)}  ${about}`);
}

function namesOf({ scenarios }: LabCommand): readonly string[] {
  return scenarios.map(({ name }) => name);
}

function refuse(sentence: string): number {
  console.error(sentence);
  return 2;
}
