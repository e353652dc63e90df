import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { getFreePort } from './free-port.js';
import { getServerProgram } from './server-program.js';
import { createTemporaryFolder } from './temporary-folder.js';
import { runThrowAway, type MortalServer, type RunningServer } from './throw-away-server.js';
import { unprivilegedUser } from './unprivileged-user.js';

export interface RunningRedis extends MortalServer {
  readonly port: number;
  readonly dataDir: string;
}

interface RedisProgram {
  readonly name: string;
  readonly port: number;
  readonly args: readonly string[];
  /** For its folder, which is also where it runs: by name. */
  readonly files?: Readonly<Record<string, string>>;
}

/** For all test files together: what REDIS_URL names, or one of our own. */
export async function startSharedRedis(): Promise<RunningServer> {
  const given = process.env.REDIS_URL;
  return given ? { url: given, stop: () => Promise.resolve() } : startRedis();
}

/** One of our own, to be killed at will. It writes nothing to disk, unless `args` tell it to. */
export async function startRedis(
  options: { readonly port?: number; readonly args?: readonly string[] } = {},
): Promise<RunningRedis> {
  const { port = await getFreePort(), args = [] } = options;
  const ours = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  return runRedis({ name: 'redis-server', port, args: [...ours, ...args] });
}

export async function runRedis({ name, port, args, files }: RedisProgram): Promise<RunningRedis> {
  const command = getServerProgram({
    program: 'redis-server',
    folders: () => ['/usr/local/bin', '/opt/homebrew/bin'],
    debianPackage: 'redis-server',
    remedy:
      'The tests need a Redis server: sudo apt-get install redis-server (or: brew install redis).',
  });
  const user = unprivilegedUser('redis');
  const folder = createTemporaryFolder('sluice-redis-', user);
  for (const [file, content] of Object.entries(files ?? {})) {
    writeFileSync(join(folder, file), content);
    if (user) chownSync(join(folder, file), user.uid, user.gid);
  }
  const url = `redis://127.0.0.1:${port}`;
  const server = await runThrowAway({
    name,
    command,
    args: [...args],
    folder,
    user,
    url,
    stopSignal: 'SIGKILL',
    ping: () => ping(url),
  });
  return { ...server, port, dataDir: folder };
}

/** A server that asks for a password is there. */
async function ping(url: string): Promise<void> {
  await askRedis(url, 'ping').catch((error: unknown) => {
    if (!(error as Error).message.startsWith('NOAUTH')) throw error;
  });
}

/** One command on a connection of its own. */
export async function askRedis(url: string, command: string, ...args: string[]): Promise<unknown> {
  const client = new Redis(url, {
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: null,
    protocol: 2,
    commandTimeout: 2_000,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await client.call(command, ...args);
  } finally {
    client.disconnect();
  }
}
