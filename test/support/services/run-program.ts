import { spawnSync } from 'node:child_process';
import { getServerProgram, type ServerProgram } from './server-program.js';

export interface Ran {
  readonly ok: boolean;
  readonly stdout: string;
  /** All that it printed. */
  readonly output: string;
}

/** Runs a program of the machine to its end; it is installed first where it is missing. */
export function runProgram(
  wanted: Pick<ServerProgram, 'program' | 'debianPackage'>,
  args: readonly string[],
  { input = '', env = {} }: { input?: string; env?: Readonly<Record<string, string>> } = {},
): Ran {
  const path = getServerProgram({
    ...wanted,
    folders: () => ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin'],
    remedy: `The tests need ${wanted.program}: sudo apt-get install ${wanted.debianPackage}`,
  });
  const { stdout, stderr, status, error } = spawnSync(path, args, {
    input,
    encoding: 'utf8',
    env: { ...process.env, ...env },
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error !== undefined) throw error;
  return { ok: status === 0, stdout, output: `${stdout}${stderr}`.trim() };
}
