import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../until.js';
import type { UserIds } from './unprivileged-user.js';

export interface RunningServer {
  url: string;
  stop: () => Promise<void>;
}

export interface ThrowAwayServer {
  name: string;
  command: string;
  args: string[];
  /** Removed when the server ends. */
  folder: string;
  user: UserIds | undefined;
  url: string;
  /** What ends it soonest: its files are deleted a moment later. */
  stopSignal: NodeJS.Signals;
  /** Rejects as long as nobody answers. */
  ping: () => Promise<unknown>;
}

/**
 * Its guard leads a process group of its own: Ctrl-C is for the test runner, which still needs the
 * server while it tidies up.
 */
export async function runThrowAway(server: ThrowAwayServer): Promise<RunningServer> {
  const { name, command, args, folder, user, url, stopSignal } = server;
  const keep = Boolean(process.env.KEEP_TEST_DB);
  const logPath = join(folder, 'server.log');
  const log = openSync(logPath, 'a');
  const guard = spawn(
    process.execPath,
    [
      join(import.meta.dirname, 'guard.mjs'),
      JSON.stringify({ command, args, folder, user, stopSignal, keep }),
    ],
    { detached: true, stdio: ['ignore', log, log, 'ipc'] },
  );
  closeSync(log);
  guard.unref();
  guard.channel?.unref();

  const guardGone = once(guard, 'exit');
  const stop = async () => {
    guard.ref();
    guard.disconnect();
    await guardGone;
  };

  let ended = false;
  guard.once('message', () => (ended = true));
  const outcome = await until(
    `${name} to answer at ${url}`,
    () => (ended ? 'ended' : server.ping().then(() => 'answers' as const)),
    { everyMs: 20 },
  );
  if (outcome === 'ended') {
    const output = readFileSync(logPath, 'utf8');
    await stop();
    throw new Error(`${name} did not start:\n${output}`);
  }

  if (!keep) return { url, stop };
  return {
    url,
    stop: async () => {
      guard.disconnect();
      process.stderr.write(`${name} kept at ${url}; to end it: kill ${guard.pid}\n`);
    },
  };
}
