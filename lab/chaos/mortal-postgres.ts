import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { startPostgres } from '../../test/support/services/postgres-server.js';
import type { MortalServer } from '../../test/support/services/throw-away-server.js';
import { until } from '../../test/support/until.js';

/** A Postgres of our own that can be killed with all its processes, and started on the same data. */
export class MortalPostgres {
  readonly #server: MortalServer;
  readonly #dataFolder: string;

  private constructor(server: MortalServer, dataFolder: string) {
    this.#server = server;
    this.#dataFolder = dataFolder;
  }

  static async start(durable: boolean): Promise<MortalPostgres> {
    const server = await startPostgres({ durable, mortal: true });
    return new MortalPostgres(server, await findDataFolder(server.url));
  }

  get url(): string {
    return this.#server.url;
  }

  /** SIGKILL to all of it. Stopped before, so that it has no child that is not in the list. */
  async kill(): Promise<void> {
    const parent = Number(
      readFileSync(join(this.#dataFolder, 'postmaster.pid'), 'utf8').split('\n')[0],
    );
    await this.#server.kill('SIGSTOP');
    const children = childrenOf(parent);
    await this.#server.kill('SIGKILL');
    children.forEach(killProcess);
    // Started sooner, it would find its memory in use and refuse.
    await until('the processes of Postgres to end', () => !isAnyThere(children), { everyMs: 50 });
  }

  /** Holds an exclusive lock on the tasks, as a migration or `vacuum full` of somebody does. */
  async lockTasks(lastsMs: number): Promise<void> {
    const client = new Client({ connectionString: this.url });
    client.on('error', () => undefined);
    await client.connect();
    try {
      await client.query('begin');
      await client.query('lock table sluice.tasks in access exclusive mode');
      await delay(lastsMs);
      await client.query('commit');
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  restart(): Promise<void> {
    return this.#server.restart();
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }
}

async function findDataFolder(url: string): Promise<string> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ data_directory: string }>('show data_directory');
    return rows[0]?.data_directory ?? '';
  } finally {
    await client.end();
  }
}

interface ListedProcess {
  readonly pid: number;
  readonly parent: number;
  /** Dead, and not yet missed by whoever inherited it. */
  readonly isZombie: boolean;
}

function listProcesses(): ListedProcess[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' });
  return lines
    .trim()
    .split('\n')
    .map((line) => {
      const [pid, parent, state = ''] = line.trim().split(/\s+/);
      return { pid: Number(pid), parent: Number(parent), isZombie: state.startsWith('Z') };
    });
}

function childrenOf(parent: number): number[] {
  return listProcesses()
    .filter((one) => one.parent === parent)
    .map(({ pid }) => pid);
}

function isAnyThere(pids: readonly number[]): boolean {
  return listProcesses().some(({ pid, isZombie }) => !isZombie && pids.includes(pid));
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
