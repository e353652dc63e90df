import type { Command } from 'commander';
import { fromSource, runFromSource } from '../from-source.js';
import { withLabOptions } from '../lab-options.js';

export function labCommand(program: Command): void {
  withLabOptions(program.command('lab', fromSource)).action(() =>
    runFromSource('lab', 'lab/case-study/main.ts', process.argv.slice(3)),
  );
}
