import { InvalidArgumentError, Option, type Command } from 'commander';
import { wholeNumber } from './options.js';

const scenarioNames = ['batch', 'sluice', 'limited', 'spiral', 'outage'] as const;

export type LabScenarioName = (typeof scenarioNames)[number];

export interface LabOptions {
  readonly timeScale: number;
  readonly seed: number;
  /** Instead of the one. */
  readonly seeds?: readonly number[];
  readonly tasks: number;
  /** Empty: all. */
  readonly only: readonly LabScenarioName[];
  readonly embedded: boolean;
  readonly json?: string;
  readonly write: boolean;
}

/** Read here so that whoever has the package alone sees them, and by the program that this runs. */
export function withLabOptions(command: Command): Command {
  return command
    .description(
      'Reproduce the published case study: a batch system, and Sluice with the same work',
    )
    .addOption(
      new Option(
        '--time-scale <n>',
        'so many times faster; what divides a minute into whole seconds',
      )
        .argParser(timeScale)
        .default(1),
    )
    .option('--seed <n>', 'what the work is drawn from', wholeNumber(0, 999_999_999), 1)
    .addOption(
      new Option('--seeds <range>', 'one after the other, for the spread: 1..5')
        .argParser(seeds)
        .conflicts('seed'),
    )
    .option('--tasks <n>', 'how many', wholeNumber(20, 100_000), 1_000)
    .addOption(
      new Option('--only <name>', `one of ${scenarioNames.join(', ')}; may be given several times`)
        .argParser(scenario)
        .default([], 'all'),
    )
    .option('--embedded', 'Sluice on its embedded database, without a Postgres server', false)
    .option('--json <file>', 'the numbers as JSON')
    .option('--write', 'tables and charts into docs/lab.md', false);
}

function timeScale(text: string): number {
  const value = wholeNumber(1, 60)(text);
  // A limit counts in whole seconds.
  if (60 % value === 0) return value;
  throw new InvalidArgumentError(
    '60 must be a multiple of it: 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30 or 60.',
  );
}

function seeds(text: string): readonly number[] {
  const [, from = 0, to = 0] = (/^(\d{1,9})\.\.(\d{1,9})$/.exec(text) ?? []).map(Number);
  const length = to - from + 1;
  if (length < 2 || length > 100) {
    throw new InvalidArgumentError(
      'It must be the first and the last of up to a hundred, like 1..5.',
    );
  }
  return Array.from({ length }, (_, n) => from + n);
}

function scenario(text: string, before: readonly LabScenarioName[]): readonly LabScenarioName[] {
  const name = scenarioNames.find((each) => each === text);
  if (name === undefined) {
    throw new InvalidArgumentError(`There are ${scenarioNames.join(', ')}.`);
  }
  return [...before, name];
}
