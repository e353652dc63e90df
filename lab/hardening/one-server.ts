import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { getFreePort } from '../../test/support/services/free-port.js';
import { Child } from '../shared/child.js';
import { cli } from '../shared/service.js';
import { readNotes, type Note } from '../workers/run-log.js';

const tasks = join(import.meta.dirname, '../workers/tasks.mjs');

export interface OneServerOptions {
  /** Absent: `error`. */
  readonly logLevel?: string;
  /** A descriptor to log to; absent: what the lab keeps of all processes. */
  readonly logFile?: number;
  /** The command line of another build. */
  readonly main?: string;
}

/** A server and its workers on a database that is given by its URL, whatever that leads to. */
export class OneServer implements AsyncDisposable {
  readonly url: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-hardening-'));
  readonly #server: Child;
  readonly #workers: Child[] = [];

  private constructor(port: number, args: readonly string[], options: OneServerOptions) {
    const { logLevel = 'error', logFile, main = cli } = options;
    this.url = `http://127.0.0.1:${port}`;
    this.#server = new Child({
      args: [main, 'serve', '--port', String(port), '--log-level', logLevel, ...args],
      env: { SLUICE_HEARTBEAT_INTERVAL_MS: '2000' },
      ...(logFile === undefined ? {} : { logFile }),
    });
  }

  /** Rejects with what it printed when it ends instead. */
  static async start(args: readonly string[], options: OneServerOptions = {}): Promise<OneServer> {
    const one = new OneServer(await getFreePort(), args, options);
    try {
      await one.#server.ready;
      return one;
    } catch (error) {
      await one[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The line that says whether it is ready. */
  get firstLine(): Promise<string> {
    return this.#server.ready;
  }

  async startWorker(name: string, concurrency: number): Promise<void> {
    const worker = new Child({
      args: [
        ...[cli, 'worker', '--url', this.url, '--name', name, '--module', tasks],
        ...['--concurrency', String(concurrency)],
      ],
      env: { RUN_LOG: join(this.#folder, 'runs'), WORKER_NAME: name },
    });
    this.#workers.push(worker);
    await worker.ready;
  }

  get pids(): readonly number[] {
    return [this.#server, ...this.#workers].map(({ pid }) => pid);
  }

  notes(): readonly Note[] {
    return readNotes(join(this.#folder, 'runs'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#server, ...this.#workers].map((child) => child.kill()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** On a connection of its own. */
export async function ask<Row extends object>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const client = new Client({ connectionString: url, application_name: 'another' });
  await client.connect();
  try {
    return (await client.query<Row>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}
