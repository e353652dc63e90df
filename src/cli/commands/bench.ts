import type { Command } from 'commander';
import { fromSource, handedOn, runFromSource } from '../from-source.js';

/** What there is beside the comparison with other queues. */
const kinds = ['growth', 'accuracy'];

export function benchCommand(program: Command): void {
  handedOn(program.command('bench', fromSource))
    .usage('[growth|accuracy] [--help]')
    .description('Measure on this machine: against other queues, growth, accuracy of limits')
    .action(runBench);
}

async function runBench(words: readonly string[]): Promise<void> {
  const [kind = '', ...others] = words;
  if (kinds.includes(kind)) {
    await runFromSource(`bench ${kind}`, `bench/${kind}/main.ts`, others);
  } else {
    await runFromSource('bench', 'bench/run/main.ts', words);
  }
}
