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

export interface MortalServer extends RunningServer {
  /** Resolves when it is dead, or when a signal that only stops or continues it was sent. */
  kill: (signal: NodeJS.Signals) => Promise<void>;
  /** After a deadly signal: the same server in the same folder. Resolves when it answers. */
  restart: () => Promise<void>;
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

const notDeadly: readonly string[] = ['SIGSTOP', 'SIGCONT'];

/**
 * Its guard leads a process group of its own: Ctrl-C is for the test runner, which still needs the
 * server while it tidies up.
 */
export async function runThrowAway(server: ThrowAwayServer): Promise<MortalServer> {
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
    if (guard.connected) guard.disconnect();
    await guardGone;
  };

  let ended = false;
  let signals = 0;
  guard.on('message', (message) => {
    if (message === 'ended') ended = true;
    else signals += 1;
  });
  const answers = async () => {
    const outcome = await until(
      `${name} to answer at ${url}`,
      () => (ended ? 'ended' : server.ping().then(() => 'answers' as const)),
      { everyMs: 20 },
    );
    if (outcome === 'answers') return;
    const output = readFileSync(logPath, 'utf8');
    await stop();
    throw new Error(`${name} did not start:\n${output}`);
  };
  const kill = async (signal: NodeJS.Signals) => {
    const before = signals;
    guard.send({ signal });
    await until(`${name} to get its signal`, () => signals > before);
    if (!notDeadly.includes(signal)) await until(`${name} to end`, () => ended);
  };
  const restart = async () => {
    ended = false;
    guard.send({ restart: true });
    await answers();
  };
  await answers();

  if (!keep) return { url, stop, kill, restart };
  return {
    url,
    stop: async () => {
      guard.disconnect();
      process.stderr.write(`${name} kept at ${url}; to end it: kill ${guard.pid}\n`);
    },
    kill,
    restart,
  };
}
