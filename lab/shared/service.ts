import { join } from 'node:path';
import { NodeHttpApi } from '../../src/client/node-http-api.js';
import type { TaskId } from '../../src/domain/ids.js';
import type { SluiceApi } from '../../src/protocol/api.js';
import type { QueueDraft } from '../../src/protocol/queues-api.js';
import type { TaskDraft } from '../../src/protocol/tasks-api.js';
import { getFreePort } from '../../test/support/services/free-port.js';
import {
  askRedis,
  startRedis,
  type RunningRedis,
} from '../../test/support/services/redis-server.js';
import { until } from '../../test/support/until.js';
import { Child } from './child.js';
import { LabDatabase } from './database.js';

export interface ServiceOptions {
  readonly servers: number;
  readonly ready: 'memory' | 'redis';
  readonly heartbeatIntervalMs?: number;
  readonly leaseMs?: number;
  /** More of the command line and of the environment of every server. */
  readonly serveArgs?: readonly string[];
  readonly serveEnv?: Readonly<Record<string, string>>;
  /** Of Node itself. */
  readonly nodeArgs?: readonly string[];
}

export interface ServiceParts {
  readonly database: LabDatabase;
  readonly redis: RunningRedis | null;
  readonly ports: readonly number[];
  readonly env: Readonly<Record<string, string>>;
  readonly serveArgs: readonly string[];
  readonly nodeArgs?: readonly string[];
}

export const cli = join(import.meta.dirname, '../../dist/cli/main.js');
const defaultHeartbeatMs = 2_000;

export async function prepareService(
  postgresUrl: string,
  options: ServiceOptions,
): Promise<ServiceParts> {
  const { servers, ready, heartbeatIntervalMs = defaultHeartbeatMs, leaseMs } = options;
  const { serveArgs = [], serveEnv = {}, nodeArgs = [] } = options;
  return {
    database: await LabDatabase.create(postgresUrl),
    redis: ready === 'redis' ? await startRedis() : null,
    ports: await Promise.all(Array.from({ length: servers }, () => getFreePort())),
    env: {
      SLUICE_HEARTBEAT_INTERVAL_MS: String(heartbeatIntervalMs),
      ...(leaseMs === undefined ? {} : { SLUICE_LEASE_MS: String(leaseMs) }),
      ...serveEnv,
    },
    serveArgs,
    nodeArgs,
  };
}

/** Servers as processes, with a database and a Redis of their own. */
export class Service implements AsyncDisposable {
  readonly database: LabDatabase;
  readonly #redis: RunningRedis | null;
  readonly #ports: readonly number[];
  readonly #env: Readonly<Record<string, string>>;
  readonly #serveArgs: readonly string[];
  readonly #nodeArgs: readonly string[];
  readonly #servers: Child[] = [];

  constructor({ database, redis, ports, env, serveArgs, nodeArgs = [] }: ServiceParts) {
    this.database = database;
    this.#redis = redis;
    this.#ports = ports;
    this.#env = env;
    this.#serveArgs = serveArgs;
    this.#nodeArgs = nodeArgs;
  }

  get urls(): readonly string[] {
    return this.#ports.map((port) => `http://127.0.0.1:${port}`);
  }

  get serverPids(): readonly number[] {
    return this.#servers.map(({ pid }) => pid);
  }

  url(server: number): string {
    const url = this.urls[server];
    if (url === undefined) throw new Error(`There is no server ${server}`);
    return url;
  }

  api(server = 0): SluiceApi {
    return new NodeHttpApi(this.url(server));
  }

  /** Of something that its `nodeArgs` put into the process. */
  async ask(server: number, question: string): Promise<unknown> {
    return this.#servers[server]?.ask(question);
  }

  /** SIGKILL, and a new process at the same address, as a supervisor would do it. */
  async killServer(server: number): Promise<void> {
    await this.endServer(server);
    await this.startServer(server);
  }

  /** SIGKILL. */
  async endServer(server: number): Promise<void> {
    await this.#servers[server]?.kill();
  }

  /** SIGTERM: it still answers for its drain time. */
  async terminateServer(server: number): Promise<void> {
    const child = this.#servers[server];
    child?.signal('SIGTERM');
    // Before its channel closes: that would tell it to stop at once.
    const hasHeard = () => child?.errors.some((line) => line.startsWith('Stopping'));
    await until('the server to stop', hasHeard);
    await child?.stop();
  }

  async startServer(server: number): Promise<void> {
    const next = this.#serve(server);
    this.#servers[server] = next;
    await next.ready;
  }

  get redisUrl(): string {
    return this.#ownRedis().url;
  }

  /** SIGSTOP, until `continueRedis`. */
  async hangRedis(): Promise<void> {
    await this.#ownRedis().kill('SIGSTOP');
  }

  async continueRedis(): Promise<void> {
    await this.#ownRedis().kill('SIGCONT');
  }

  async flushRedis(): Promise<void> {
    await askRedis(this.#ownRedis().url, 'flushall');
  }

  async killRedis(): Promise<void> {
    await this.#ownRedis().kill('SIGKILL');
    await this.#ownRedis().restart();
  }

  /** In as many calls as it takes; the ids in the order of the drafts. */
  async submit(drafts: readonly TaskDraft[], server = 0): Promise<TaskId[]> {
    const outcomes = await this.api(server).submitMany(drafts);
    return outcomes.map((outcome) => {
      if (outcome.kind === 'refused') throw new Error(`A task was refused: ${outcome.detail}`);
      return outcome.receipt.taskId;
    });
  }

  async put(queue: string, change: QueueDraft, server = 0): Promise<void> {
    await this.api(server).putQueue(queue, change);
  }

  async countLiving(): Promise<number> {
    const [row] = await this.database.query<{ count: number }>(
      'select count(*)::integer as count from sluice.tasks',
    );
    return row?.count ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.kill()));
    await this.#redis?.stop();
    await this.database.drop();
  }

  /** All of them at once. What is there already is put away when one does not start. */
  protected async startServers(): Promise<void> {
    try {
      await Promise.all(this.#ports.map((_, server) => this.startServer(server)));
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  #serve(server: number): Child {
    const redis = this.#redis === null ? [] : ['--redis-url', this.#redis.url];
    return new Child({
      args: [
        ...[...this.#nodeArgs, cli, 'serve', '--port', String(this.#ports[server])],
        ...['--database-url', this.database.url, '--log-level', 'error', ...redis],
        ...this.#serveArgs,
      ],
      env: this.#env,
    });
  }

  #ownRedis(): RunningRedis {
    if (this.#redis === null) throw new Error('There is no Redis here');
    return this.#redis;
  }
}
