import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Command } from 'commander';
import { CliError } from './failure.js';

const sourceRoot = join(import.meta.dirname, '../..');

/** Not offered by the installed package, which leaves the source out; who names it reads why. */
export const fromSource = { hidden: !existsSync(join(sourceRoot, 'lab')) };

/** A command whose words are read by the program that it runs, `--help` among them. */
export function handedOn(command: Command): Command {
  return command.argument('[words...]').allowUnknownOption().helpOption(false);
}

/**
 * Runs a TypeScript program of the source tree, which the package leaves out, with all that this one was
 * told after the name of the command.
 */
export async function runFromSource(
  command: string,
  program: string,
  args: readonly string[],
  root = sourceRoot,
): Promise<void> {
  const file = join(root, program);
  if (!existsSync(file)) {
    throw new CliError(
      `"sluice ${command}" runs from a checkout of Sluice's source, which the installed package leaves out: ` +
        `in a clone of the repository, "npm ci && npm run build && node dist/cli/main.js ${command}".`,
    );
  }
  const child = spawn(process.execPath, [tsxOf(root), file, ...args], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => child.kill(signal));
  }
  const [code] = (await once(child, 'exit')) as [number | null];
  process.exitCode = code ?? 1;
}

function tsxOf(root: string): string {
  try {
    return createRequire(join(root, 'package.json')).resolve('tsx/cli');
  } catch (error) {
    throw new CliError('What it needs is not installed.', {
      next: `Run "npm ci" in ${root}.`,
      cause: error,
    });
  }
}
