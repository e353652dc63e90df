import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { getFreePort } from './free-port.js';
import { getServerProgram } from './server-program.js';
import { createTemporaryFolder } from './temporary-folder.js';
import { runThrowAway, type MortalServer, type RunningServer } from './throw-away-server.js';
import { unprivilegedUser, type UserIds } from './unprivileged-user.js';

interface PostgresOptions {
  /** As in production: for measurements. Without it only tests may run on it. */
  readonly durable?: boolean;
}

/** What DATABASE_URL names, or one of our own. `mortal`: our own in any case, to be killed at will. */
export async function startPostgres(
  options: PostgresOptions & { readonly mortal: true },
): Promise<MortalServer>;
export async function startPostgres(options?: PostgresOptions): Promise<RunningServer>;
export async function startPostgres(
  options: PostgresOptions & { readonly mortal?: true } = {},
): Promise<RunningServer> {
  const given = process.env.DATABASE_URL;
  if (!given || options.mortal === true) return startOwnPostgres(options);
  return { url: given, stop: () => Promise.resolve() };
}

/** A standby that follows the server at the URL, which is one of our own. `select pg_promote()` makes it a primary. */
export function startStandby(primaryUrl: string): Promise<MortalServer> {
  return startOwnPostgres({ primaryUrl });
}

async function startOwnPostgres(
  options: PostgresOptions & { readonly primaryUrl?: string },
): Promise<MortalServer> {
  const command = getServerProgram({
    program: 'postgres',
    folders: postgresFolders,
    debianPackage: 'postgresql',
    remedy:
      'The tests need a Postgres server: sudo apt-get install postgresql (or: brew install postgresql), or set DATABASE_URL.',
  });
  const user = unprivilegedUser('postgres');
  const folder = createTemporaryFolder('sluice-postgres-', user);
  const dataFolder = join(folder, 'data');
  const programs = dirname(realpathSync(command));
  if (options.primaryUrl === undefined) createCluster(programs, folder, dataFolder, user);
  else copyCluster(programs, options.primaryUrl, folder, dataFolder, user);

  const port = await getFreePort();
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    max_connections: 300,
    shared_buffers: '128MB',
    // Only a crash of the operating system could lose anything, and the folder with it.
    ...(options.durable === true ? {} : { fsync: 'off', full_page_writes: 'off' }),
  };
  return runThrowAway({
    name: 'postgres',
    command,
    args: ['-D', dataFolder, ...Object.entries(settings).flatMap(([k, v]) => ['-c', `${k}=${v}`])],
    folder,
    user,
    url,
    stopSignal: 'SIGQUIT',
    ping: () => ping(url),
  });
}

function postgresFolders(): string[] {
  return [...debianFolders(), ...installationFolder()];
}

function debianFolders(): string[] {
  const root = '/usr/lib/postgresql';
  if (!existsSync(root)) return [];
  const newestFirst = readdirSync(root).sort((a, b) => Number(b) - Number(a));
  return newestFirst.map((version) => join(root, version, 'bin'));
}

function installationFolder(): string[] {
  try {
    return [execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: 'pipe' }).trim()];
  } catch {
    return [];
  }
}

function createCluster(
  programs: string,
  folder: string,
  dataFolder: string,
  user: UserIds | undefined,
): void {
  const options = ['--no-sync', '--username=postgres', '--auth=trust'];
  const encoding = ['--encoding=UTF8', '--locale=C'];
  runIn(folder, join(programs, 'initdb'), ['-D', dataFolder, ...options, ...encoding], user);
}

/** `-R`: it begins as a standby of that server. */
function copyCluster(
  programs: string,
  primaryUrl: string,
  folder: string,
  dataFolder: string,
  user: UserIds | undefined,
): void {
  const options = ['--no-sync', '--checkpoint=fast', '--wal-method=stream', '-R'];
  const args = ['-D', dataFolder, '-d', primaryUrl, ...options];
  runIn(folder, join(programs, 'pg_basebackup'), args, user);
}

function runIn(folder: string, program: string, args: string[], user: UserIds | undefined): void {
  try {
    execFileSync(program, args, { ...user, cwd: folder, stdio: 'pipe' });
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function ping(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
  } finally {
    await client.end();
  }
}
