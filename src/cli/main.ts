#!/usr/bin/env node
import { CommanderError } from 'commander';
import { describeFailure, exitCodeOf } from './failure.js';
import { buildProgram } from './program.js';

// Whoever reads may have enough, like head: that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

try {
  await buildProgram().parseAsync();
} catch (error) {
  // Commander has already said what was wrong with the command line.
  if (!(error instanceof CommanderError)) process.stderr.write(`${describeFailure(error)}\n`);
  process.exitCode = exitCodeOf(error);
}
