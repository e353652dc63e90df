// Many short lives of a small cluster, in a time of their own: npm run simulate -- --help
import { parseArgs } from 'node:util';

import Table from 'cli-table3';

import { transitions } from '../../src/domain/task-state.js';
import { Progress } from '../shared/progress.js';
import { Campaign } from './campaign.js';
import { Crew } from './crew.js';
import type { Job, Outcome } from './job.js';
import { parseNumbers, printNumbers } from './number-list.js';

const help = `npm run simulate -- [--seeds N] [--from N] [--steps N] [--repeat] [--processes N]
npm run simulate -- --seed N [--steps N] [--without LIST] [--trace]

  --seeds N       how many lives (1,000)
  --from N        the first of them (1)
  --steps N       how many steps each takes before it is drained (80)
  --repeat        each twice, to see that the same seed gives the same history
  --processes N   how many processes share the work (2)
  --seed N        one life
  --without LIST  steps that are left out: 3,5-9
  --trace         all that happened in it
`;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    steps: { type: 'string', default: '80' },
    repeat: { type: 'boolean', default: false },
    processes: { type: 'string', default: '2' },
    seed: { type: 'string' },
    without: { type: 'string', default: '' },
    trace: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<number> {
  if (values.help) {
    console.log(help);
    return 0;
  }
  const { seed } = values;
  return seed === undefined ? manySeeds() : oneSeed(Number(seed));
}

async function oneSeed(seed: number): Promise<number> {
  await using crew = await Crew.open({ processes: 1 });
  const without = parseNumbers(values.without);
  const job = { seed, steps: Number(values.steps), without, trace: values.trace };
  const outcome = await crew.do(job);
  if (values.trace) console.log(outcome.trace.join('\n'));
  if (outcome.failure === null) {
    console.log(`Seed ${seed}: nothing was broken, ${outcome.tasks} tasks.`);
    return 0;
  }
  if (values.trace) console.log(outcome.failure.message);
  else explain(outcome);
  return 1;
}

async function manySeeds(): Promise<number> {
  await using crew = await Crew.open({ processes: Number(values.processes) });
  const beganMs = performance.now();
  const campaign = new Campaign(crew, {
    first: Number(values.from),
    count: Number(values.seeds),
    steps: Number(values.steps),
    isRepeated: values.repeat,
  });
  const running = campaign.run(Number(values.processes));
  await new Progress().until('lives', campaign.count, async () => campaign.done);
  await running;
  printTable(campaign.outcomes, (performance.now() - beganMs) / 1000);
  const { unlike, failed } = campaign;
  if (unlike !== null) console.log(`Seed ${unlike} gave two different histories.`);
  if (failed !== null) {
    explain(failed);
    await offerSmaller(crew, failed);
  }
  return unlike === null && failed === null ? 0 : 1;
}

function printTable(outcomes: readonly Outcome[], seconds: number): void {
  const sum = (of: (outcome: Outcome) => number) => outcomes.reduce((n, one) => n + of(one), 0);
  const steps = sum((one) => one.steps);
  const broken = outcomes.filter(({ failure }) => failure !== null).length;
  const table = new Table({ head: ['lives', 'steps', 'tasks', 'time in them', 'broken', 'took'] });
  const hours = sum((one) => one.virtualMs) / 3_600_000;
  table.push([
    outcomes.length,
    steps,
    sum((one) => one.tasks),
    `${hours.toFixed(1)} h`,
    broken,
    `${seconds.toFixed(0)} s`,
  ]);
  console.log(table.toString());
  const moves = transitions.map(({ from, to }) => {
    const move = `${from} → ${to}`;
    return `${move} ${sum((one) => one.moves[move] ?? 0)}`;
  });
  console.log(`${moves.join(', ')}.`);
  const rate = (count: number) => (count / seconds).toFixed(1);
  console.log(`${rate(outcomes.length)} lives and ${rate(steps)} steps a second.`);
}

function explain({ failure, trace, ...job }: Outcome): void {
  const where = failure?.step === 'drain' ? 'in its drain' : `at step ${failure?.step ?? 0}`;
  console.log(`\nSeed ${job.seed} broke a rule ${where}. Its last lines:\n`);
  console.log(trace.join('\n'));
  console.log(`\n${failure?.message ?? ''}\n\nAgain: ${commandOf(job)}`);
}

async function offerSmaller(crew: Crew, { seed, steps }: Outcome): Promise<void> {
  console.error('Leaving out what it does not need …');
  const smaller = await crew.do({ kind: 'shrink', seed, steps });
  const taken = smaller.steps - smaller.without.length;
  console.log(`With ${taken} of its ${steps} steps: ${commandOf(smaller)}`);
}

function commandOf({ seed, steps, without }: Pick<Job, 'seed' | 'steps' | 'without'>): string {
  const less = without.length === 0 ? '' : ` --without ${printNumbers(without)}`;
  return `npm run simulate -- --seed ${seed} --steps ${steps}${less} --trace`;
}

process.exitCode = await main();
