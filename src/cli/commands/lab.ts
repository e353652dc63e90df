import type { Command } from 'commander';
import { runFromSource } from '../from-source.js';
import { withLabOptions } from '../lab-options.js';

export function labCommand(program: Command): void {
  withLabOptions(program.command('lab')).action(() =>
    runFromSource('lab', 'lab/case-study/main.ts', process.argv.slice(3)),
  );
}
