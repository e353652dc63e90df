import { join } from 'node:path';
import { HttpApi } from '../../src/client/http-api.js';
import type { QueueChange, SluiceApi, TaskDraft } from '../../src/protocol/api.js';
import type { RateLimit } from '../../src/domain/queue-settings.js';
import { getFreePort } from '../../test/support/services/free-port.js';
import {
  askRedis,
  startRedis,
  type RunningRedis,
} from '../../test/support/services/redis-server.js';
import { Child } from './child.js';
import { readClaims, type Claim } from './claims.js';
import { LabDatabase } from './database.js';
import { startStandIn, type StandIn } from './stand-in.js';

export interface ClusterOptions {
  readonly servers: number;
  readonly ready: 'memory' | 'redis';
}

export interface WorkersOptions {
  readonly workers: number;
  readonly concurrency: number;
  /** Which servers they talk to, by turns; absent: all. */
  readonly at?: readonly number[];
}

const root = join(import.meta.dirname, '../..');
const maxWorkerProcesses = 4;

/** Servers and workers as processes, with a database, a Redis and a stand-in of their own. */
export class Cluster implements AsyncDisposable {
  readonly database: LabDatabase;
  readonly standIn: StandIn;
  readonly #redis: RunningRedis | null;
  readonly #ports: readonly number[];
  readonly #servers: Child[] = [];
  readonly #workers: Child[] = [];

  private constructor(
    database: LabDatabase,
    standIn: StandIn,
    redis: RunningRedis | null,
    ports: readonly number[],
  ) {
    this.database = database;
    this.standIn = standIn;
    this.#redis = redis;
    this.#ports = ports;
  }

  static async start(postgresUrl: string, { servers, ready }: ClusterOptions): Promise<Cluster> {
    const cluster = new Cluster(
      await LabDatabase.create(postgresUrl),
      await startStandIn(),
      ready === 'redis' ? await startRedis() : null,
      await Promise.all(Array.from({ length: servers }, () => getFreePort())),
    );
    try {
      for (const index of cluster.#ports.keys()) cluster.#servers[index] = cluster.#serve(index);
      await Promise.all(cluster.#servers.map((server) => server.ready));
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  get urls(): readonly string[] {
    return this.#ports.map((port) => `http://127.0.0.1:${port}`);
  }

  get serverPids(): readonly number[] {
    return this.#servers.map(({ pid }) => pid);
  }

  api(server = 0): SluiceApi {
    return new HttpApi(this.#url(server));
  }

  async startWorkers({ workers, concurrency, at }: WorkersOptions): Promise<void> {
    const urls = Array.from({ length: workers }, (_, index) => {
      const server = at === undefined ? index % this.#ports.length : at[index % at.length];
      return this.#url(server ?? 0);
    });
    const started = dealt(urls, Math.min(workers, maxWorkerProcesses)).map(
      (dealtUrls) =>
        new Child({
          args: [
            join(import.meta.dirname, 'worker-process.mjs'),
            JSON.stringify({ urls: dealtUrls, concurrency }),
          ],
          env: { STAND_IN_URL: this.standIn.url },
        }),
    );
    this.#workers.push(...started);
    await Promise.all(started.map((worker) => worker.ready));
  }

  async stopWorkers(): Promise<void> {
    const stopping = this.#workers.splice(0);
    await Promise.all(stopping.map((worker) => worker.stop()));
  }

  /** SIGKILL, and a new process at the same address, as a supervisor would do it. */
  async killServer(server: number): Promise<void> {
    await this.#servers[server]?.kill();
    const next = this.#serve(server);
    this.#servers[server] = next;
    await next.ready;
  }

  async flushRedis(): Promise<void> {
    await askRedis(this.#ownRedis().url, 'flushall');
  }

  async killRedis(): Promise<void> {
    await this.#ownRedis().kill('SIGKILL');
    await this.#ownRedis().restart();
  }

  /** In as many calls as it takes; the ids in the order of the drafts. */
  async submit(drafts: readonly TaskDraft[], server = 0): Promise<string[]> {
    const outcomes = await this.api(server).submitMany(drafts);
    return outcomes.map((outcome) => {
      if (outcome.kind === 'refused') throw new Error(`A task was refused: ${outcome.detail}`);
      return outcome.receipt.taskId;
    });
  }

  async put(queue: string, change: QueueChange, server = 0): Promise<void> {
    await this.api(server).putQueue(queue, change);
  }

  claims(): Promise<readonly Claim[]> {
    return readClaims(this.database);
  }

  async countLiving(): Promise<number> {
    const [row] = await this.database.query<{ count: number }>(
      'select count(*)::integer as count from sluice.tasks',
    );
    return row?.count ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#workers, ...this.#servers].map((child) => child.kill()));
    await this.standIn.close();
    await this.#redis?.stop();
    await this.database.drop();
  }

  #serve(server: number): Child {
    const redis = this.#redis === null ? [] : ['--redis-url', this.#redis.url];
    return new Child({
      args: [
        ...[join(root, 'dist/cli/main.js'), 'serve', '--port', String(this.#ports[server])],
        ...['--database-url', this.database.url, '--log-level', 'error', ...redis],
      ],
      env: { SLUICE_HEARTBEAT_INTERVAL_MS: '2000' },
    });
  }

  #url(server: number): string {
    const url = this.urls[server];
    if (url === undefined) throw new Error(`There is no server ${server}`);
    return url;
  }

  #ownRedis(): RunningRedis {
    if (this.#redis === null) throw new Error('This cluster has no Redis');
    return this.#redis;
  }
}

/** Like cards, so that every hand has some of each server. */
function dealt<Item>(items: readonly Item[], hands: number): Item[][] {
  return Array.from({ length: hands }, (_, hand) =>
    items.filter((_item, index) => index % hands === hand),
  );
}

export function requests(rate: number, perSeconds: number): RateLimit {
  return { unit: 'requests', rate, perSeconds, burst: null };
}
