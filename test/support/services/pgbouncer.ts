import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { getFreePort } from './free-port.js';
import { getServerProgram } from './server-program.js';
import { createTemporaryFolder } from './temporary-folder.js';
import { runThrowAway, type MortalServer } from './throw-away-server.js';
import { unprivilegedUser } from './unprivileged-user.js';

export interface PgBouncerOptions {
  readonly poolMode: 'session' | 'transaction' | 'statement';
  /** Connections to Postgres for each database and user. */
  readonly poolSize?: number;
}

/** A real PgBouncer in front of what the URL names; its URL has the same user and database. */
export async function startPgBouncer(
  databaseUrl: string,
  { poolMode, poolSize = 1 }: PgBouncerOptions,
): Promise<MortalServer> {
  const command = getServerProgram({
    program: 'pgbouncer',
    folders: () => ['/usr/sbin', '/usr/local/bin', '/opt/homebrew/bin'],
    debianPackage: 'pgbouncer',
    remedy:
      'The tests need PgBouncer: sudo apt-get install pgbouncer (or: brew install pgbouncer).',
  });
  const user = unprivilegedUser('postgres');
  const folder = createTemporaryFolder('sluice-pgbouncer-', user);
  const target = new URL(databaseUrl);
  const port = await getFreePort();
  const files = {
    'users.txt': `"${target.username}" "${target.password}"\n`,
    'pgbouncer.ini': [
      '[databases]',
      `* = host=${target.hostname} port=${target.port}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = trust',
      `admin_users = ${target.username}`,
      `auth_file = ${join(folder, 'users.txt')}`,
      `pool_mode = ${poolMode}`,
      `default_pool_size = ${poolSize}`,
      '',
    ].join('\n'),
  };
  for (const [file, content] of Object.entries(files)) {
    writeFileSync(join(folder, file), content);
    if (user) chownSync(join(folder, file), user.uid, user.gid);
  }
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${port}`;
  return runThrowAway({
    name: 'pgbouncer',
    command,
    args: ['-q', join(folder, 'pgbouncer.ini')],
    folder,
    user,
    url: url.href,
    stopSignal: 'SIGKILL',
    ping: () => ping(url.href),
  });
}

async function ping(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
  } finally {
    await client.end();
  }
}
