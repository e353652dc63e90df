import { join } from 'node:path';

import { NodeHttpApi } from '../../src/client/node-http-api.js';
import { startCli, type CliProcess } from '../support/cli.js';
import { getFreePort } from '../support/services/free-port.js';

/** Heartbeats that an answer to a poll does not fall behind by two, however busy the machine. */
const env = { SLUICE_HEARTBEAT_INTERVAL_MS: '2000', SLUICE_LOG_LEVEL: 'error' };

/** `sluice serve` at an address that outlives the process. */
export class TestServer {
  readonly url: string;
  readonly #args: string[];
  readonly #env: Readonly<Record<string, string>>;
  #process: CliProcess;

  private constructor(port: number, args: string[], more: Readonly<Record<string, string>>) {
    this.url = `http://127.0.0.1:${port}`;
    this.#args = ['serve', '--port', String(port), ...args];
    this.#env = { ...env, ...more };
    this.#process = this.#spawn();
  }

  static async start(
    databaseUrl: string,
    redisUrl: string | null,
    more: Readonly<Record<string, string>> = {},
    flags: readonly string[] = [],
  ): Promise<TestServer> {
    const redis = redisUrl === null ? [] : ['--redis-url', redisUrl];
    const args = ['--database-url', databaseUrl, ...redis, ...flags];
    const server = new TestServer(await getFreePort(), args, more);
    await server.#untilReady();
    return server;
  }

  get api(): NodeHttpApi {
    return new NodeHttpApi(this.url);
  }

  /** Another process takes its address, as a supervisor would see to it. */
  async restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#process.kill(signal);
    await this.begin();
  }

  async stop(): Promise<void> {
    await this.#process.kill('SIGTERM');
  }

  async begin(): Promise<void> {
    this.#process = this.#spawn();
    await this.#untilReady();
  }

  #spawn(): CliProcess {
    return startCli(this.#args, { env: this.#env });
  }

  async #untilReady(): Promise<void> {
    await this.#process.waitForLine(/^Sluice is ready at http/);
  }
}

export interface TestWorkerOptions {
  readonly module: string;
  readonly concurrency: number;
  readonly env?: Readonly<Record<string, string>>;
}

export async function startTestWorker(
  { url }: TestServer,
  options: TestWorkerOptions,
): Promise<CliProcess> {
  const { module, concurrency } = options;
  const args = ['worker', '--url', url, '--module', module, '--concurrency', String(concurrency)];
  const worker = startCli(args, { env: { ...env, ...options.env } });
  await worker.waitForLine(/^Worker \S+ is ready/);
  return worker;
}

/** `call`, which calls a stand-in service, and others. */
export const labTasks = join(import.meta.dirname, '../../lab/limits/tasks.mjs');
