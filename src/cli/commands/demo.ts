import type { Command } from 'commander';
import { wholeNumber } from '../options.js';

interface DemoCommandOptions {
  readonly tasks: number;
  readonly keep?: boolean;
}

export function demoCommand(program: Command): void {
  program
    .command('demo')
    .description('See it work: a server, workers and a thousand model calls, in under a minute')
    .option('--tasks <n>', 'how many calls', wholeNumber(1, 100_000), 1_000)
    .option('--keep', 'leave the server up at the end')
    .action(runDemoCommand);
}

async function runDemoCommand({ tasks, keep = false }: DemoCommandOptions): Promise<void> {
  const { runDemo } = await import('../demo/demo.js');
  const interrupting = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (interrupting.signal.aborted) process.exit(1);
      interrupting.abort(new Interrupted());
    });
  }
  try {
    await runDemo({ tasks, keep, signal: interrupting.signal });
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    process.exit(keep ? 0 : 130);
  }
}

class Interrupted extends Error {}
