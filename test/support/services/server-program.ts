import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { isRoot } from './unprivileged-user.js';

export interface ServerProgram {
  program: string;
  /** Where it may be besides PATH: Debian, for one, keeps server programs out of it. */
  folders: () => string[];
  debianPackage: string;
  /** The one line that helps a person whose machine has it not and may not get it by itself. */
  remedy: string;
}

/** A file of a package without a program of its own, such as a library. */
export function ensureDebianFile(path: string, debianPackage: string): void {
  if (existsSync(path)) return;
  const cause = isRoot ? install(debianPackage) : undefined;
  if (existsSync(path)) return;
  throw oneLineError(`The tests need ${path}: sudo apt-get install ${debianPackage}`, cause);
}

/** The path of the program; installed first where it is missing and this process may do so. */
export function getServerProgram(wanted: ServerProgram): string {
  const found = findServerProgram(wanted);
  if (found !== null) return found;
  const cause = isRoot ? install(wanted.debianPackage) : undefined;
  const installed = findServerProgram(wanted);
  if (installed !== null) return installed;
  throw oneLineError(wanted.remedy, cause);
}

function findServerProgram({ program, folders }: ServerProgram): string | null {
  const inPath = (process.env.PATH ?? '').split(delimiter);
  const candidates = [...inPath, ...folders()].map((folder) => join(folder, program));
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What went wrong, if anything did. */
function install(debianPackage: string): unknown {
  process.stderr.write(`Installing ${debianPackage} for the tests …\n`);
  // Test files run in parallel, and apt-get fails at once while another one holds its lock.
  const lock = join(tmpdir(), 'sluice-tests-apt-get.lock');
  const aptGet = (...args: string[]) =>
    execFileSync('flock', [lock, 'apt-get', '-q', '-y', ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: 'pipe',
    });
  try {
    aptGet('update');
    aptGet('install', '--no-install-recommends', debianPackage);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The stack would bury the only line that matters. */
function oneLineError(message: string, cause: unknown): Error {
  const error = new Error(message, { cause });
  error.stack = message;
  return error;
}
