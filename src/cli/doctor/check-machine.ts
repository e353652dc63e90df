import { access, constants } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, resolve } from 'node:path';
import { failed, ok, warning, type Check } from './check.js';

const leastNode = [20, 19] as const;

export function checkNode(version = process.versions.node): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isEnough = major > leastNode[0] || (major === leastNode[0] && minor >= leastNode[1]);
  return isEnough
    ? ok('Node', version)
    : failed('Node', version, `Install Node ${leastNode.join('.')} or later.`);
}

export async function checkServer(url: string): Promise<Check> {
  const start = 'Start one with "sluice serve", or say where it is with --url.';
  try {
    const response = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(5_000) });
    if (response.ok) return ok('server', `ready at ${url}`);
    const { detail = `it answered ${response.status}` } = (await response.json()) as {
      detail?: string;
    };
    return warning('server', `at ${url}, but not ready: ${detail}`, 'See its log.');
  } catch (error) {
    const { cause, message } = error as Error;
    const why = cause instanceof Error ? cause.message : message;
    return warning('server', `none at ${url} (${why})`, start);
  }
}

/** A port that our own server holds is as good as a free one. */
export async function checkPort(host: string, port: number, server: Check): Promise<Check> {
  const what = `port ${port}`;
  const problem = await tryListen(host, port);
  if (problem === null) return ok(what, 'free');
  if (problem === 'EADDRINUSE' && server.health === 'ok') return ok(what, 'held by the server');
  const advice = 'Choose another with --port or SLUICE_PORT.';
  return failed(what, problem === 'EADDRINUSE' ? 'taken by another process' : problem, advice);
}

export async function checkDataFolder(folder: string): Promise<Check> {
  const what = `data folder ${folder}`;
  const { lockDataFolder, DataFolderInUseError } = await import('../../store/data-folder-lock.js');
  if (!(await exists(folder))) {
    const parent = dirname(resolve(folder));
    return (await isWritable(parent))
      ? ok(what, 'not there yet; "serve" makes it')
      : failed(what, `can't be made in ${parent}`, 'Choose a folder you may write to with --data.');
  }
  if (!(await isWritable(folder))) {
    return failed(what, 'not writable', 'Choose a folder you may write to with --data.');
  }
  try {
    lockDataFolder(folder)();
    return ok(what, 'there, and nobody uses it');
  } catch (error) {
    if (error instanceof DataFolderInUseError) return ok(what, 'in use by a running process');
    return failed(what, (error as Error).message, 'Choose another folder with --data.');
  }
}

function tryListen(host: string, port: number): Promise<string | null> {
  return new Promise((answer) => {
    const server = createServer();
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => answer(code ?? message));
    server.listen({ host, port }, () => server.close(() => answer(null)));
  });
}

function exists(path: string): Promise<boolean> {
  return canAccess(path, constants.F_OK);
}

function isWritable(path: string): Promise<boolean> {
  return canAccess(path, constants.W_OK);
}

async function canAccess(path: string, mode: number): Promise<boolean> {
  try {
    await access(path, mode);
    return true;
  } catch {
    return false;
  }
}
