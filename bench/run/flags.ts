import { parseArgs } from 'node:util';
import { contenders, type Contender } from './contenders.js';
import type { Sizes } from './run-contender.js';

export interface Flags {
  readonly rounds: number;
  readonly sizes: Sizes;
  readonly chosen: readonly Contender[];
  readonly short: boolean;
  readonly write: boolean;
  readonly json: string | undefined;
  readonly node: string | undefined;
}

export class WrongFlag extends Error {}

const shortly: readonly string[] = [
  'bullmq',
  'bullmq-durable',
  'graphile-local-queue',
  'sluice-postgres',
  'sluice-http',
];

export const help = `sluice bench [--rounds 5] [--tasks 20000] [--warm-up 20000] [--only NAME]… [--json FILE] [--write] [--node PATH]
sluice bench --short [--write]

  --rounds N    rounds; in each one all contenders run, in another order
  --tasks N     tasks to enqueue in bulk and to process
  --warm-up N   tasks that are enqueued and processed before anything is measured; as many as --tasks
  --only NAME   one contender; may be given several times
  --json FILE   every round as JSON
  --write       the tables and charts into docs; with --short, its ratios into bench/recorded.json
  --short       the ratios that matter, on few tasks; fails when one is below half of what was recorded
  --node PATH   the Node that all contenders run on

  ${contenders.map(({ name, title }) => `${name.padEnd(22)}${title}`).join('\n  ')}`;

/** Null: only help is wanted. */
export function readFlags(args: readonly string[]): Flags | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      tasks: { type: 'string' },
      'warm-up': { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      json: { type: 'string' },
      write: { type: 'boolean', default: false },
      short: { type: 'boolean', default: false },
      node: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  const { short, write, only, json, node } = values;
  if (write && only.length > 0) {
    throw new WrongFlag('--write is for a whole run: without --only');
  }
  const tasks = count('--tasks', values.tasks, short ? 8_000 : 20_000);
  return {
    rounds: count('--rounds', values.rounds, short ? 3 : 5),
    sizes: sizesFor(tasks, count('--warm-up', values['warm-up'], tasks), short),
    chosen: choose(only, short),
    short,
    write,
    json,
    node,
  };
}

function sizesFor(tasks: number, warmUp: number, short: boolean): Sizes {
  if (short) return { tasks, submits: 2_000, samples: 50, warmUp };
  const submits = Math.max(50, Math.floor(tasks / 2));
  return { tasks, submits, samples: 500, warmUp };
}

function choose(only: readonly string[], short: boolean): readonly Contender[] {
  const names = contenders.map(({ name }) => name);
  const unknown = only.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    throw new WrongFlag(`There is no ${unknown.join(', ')}; there are ${names.join(', ')}`);
  }
  const wanted = only.length > 0 ? only : short ? shortly : names;
  return contenders.filter(({ name }) => wanted.includes(name));
}

function count(flag: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new WrongFlag(`${flag} takes a whole number above 0, not ${text}`);
}
