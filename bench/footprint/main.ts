import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { printLine, printNote, printTable } from '../../src/cli/output.js';
import { median } from '../median.js';

const help = `npm run footprint -- [--rounds 3] [--against FOLDER]

What embedded Postgres costs: how long it takes to open, and how much memory it keeps. Each number is the
median of the rounds, each round in processes of its own.

--against FOLDER  another version beside this one, in turns: a checkout with its dist and node_modules
--rounds N        how often each is measured (default 3)`;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    against: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

interface Duration {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** What a process prints after each open. */
interface Opened {
  readonly open: Duration;
  readonly firstTask: Duration;
  readonly residentBytes: number;
}

const durations = [
  'first open of a data folder',
  'a later open',
  'start after SIGKILL, until a task has run',
  ':memory:, the first in a process',
  ':memory:, each later one',
] as const;
const idleSeconds = 15;
const memory = `resident after ${idleSeconds} s idle`;
const laterInstances = 3;

interface Round {
  readonly durations: Readonly<Record<(typeof durations)[number], Duration>>;
  readonly residentBytes: number;
}

if (values.help) printLine(help);
else await main();

async function main(): Promise<void> {
  const builds = [
    ...(values.against === undefined ? [] : [{ name: 'before', root: resolve(values.against) }]),
    {
      name: values.against === undefined ? 'now' : 'after',
      root: join(import.meta.dirname, '../..'),
    },
  ].map((build) => ({ ...build, rounds: [] as Round[] }));
  const loadBefore = load();
  for (let round = 1; round <= Number(values.rounds); round += 1) {
    for (const { name, root, rounds } of builds) {
      printNote(`round ${round}, ${name}`);
      rounds.push(await measure(root));
    }
  }
  printTable(
    [
      { title: '' },
      ...builds.flatMap(({ name }) => [
        { title: name, align: 'right' as const },
        { title: 'CPU time', align: 'right' as const },
      ]),
    ],
    [
      ...durations.map((what) => [
        what,
        ...builds.flatMap(({ rounds }) => {
          const measured = rounds.map((round) => round.durations[what]);
          return [
            ms(median(measured.map(({ wallMs }) => wallMs))),
            ms(median(measured.map(({ cpuMs }) => cpuMs))),
          ];
        }),
      ]),
      [
        memory,
        ...builds.flatMap(({ rounds }) => [
          megabytes(median(rounds.map(({ residentBytes }) => residentBytes))),
          '',
        ]),
      ],
    ],
  );
  printLine();
  printLine(
    `Node ${process.version}, ${availableParallelism()} cores, load average ${loadBefore} before and ${load()} ` +
      'after. With other work on the machine times are longer; CPU time and memory are hardly affected.',
  );
}

async function measure(root: string): Promise<Round> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-footprint-'));
  const dataDir = join(folder, 'data');
  try {
    const [first] = await run(root, dataDir, { count: 1 });
    const [later] = await run(root, dataDir, { count: 1, ends: 'killed' });
    const [restarted] = await run(root, dataDir, { count: 1, idleSeconds });
    const [one, ...others] = await run(root, ':memory:', { count: 1 + laterInstances });
    return {
      durations: {
        'first open of a data folder': first.open,
        'a later open': later.open,
        'start after SIGKILL, until a task has run': restarted.firstTask,
        ':memory:, the first in a process': one.open,
        ':memory:, each later one': {
          wallMs: median(others.map(({ open }) => open.wallMs)),
          cpuMs: median(others.map(({ open }) => open.cpuMs)),
        },
      },
      residentBytes: restarted.residentBytes,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface RunOptions {
  readonly count: number;
  readonly idleSeconds?: number;
  /** `killed`: by SIGKILL, as soon as it has printed all. */
  readonly ends?: 'closed' | 'killed';
}

async function run(
  root: string,
  dataDir: string,
  { count, idleSeconds = 0, ends = 'closed' }: RunOptions,
): Promise<[Opened, ...Opened[]]> {
  const args = [join(import.meta.dirname, 'process.mjs'), root, dataDir, count, idleSeconds, ends];
  const child = spawn(process.execPath, args.map(String), { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const printed: Opened[] = [];
  for await (const line of createInterface(child.stdout)) {
    printed.push(JSON.parse(line) as Opened);
    if (printed.length === count && ends === 'killed') child.kill('SIGKILL');
  }
  await exited;
  const [first, ...others] = printed;
  if (first === undefined || printed.length < count) {
    throw new Error(`A process that was to open ${dataDir} with ${root} ended too early`);
  }
  return [first, ...others];
}

function load(): string {
  return (loadavg()[0] ?? 0).toFixed(1);
}

function ms(value: number): string {
  return `${Math.round(value).toLocaleString('en')} ms`;
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MB`;
}
