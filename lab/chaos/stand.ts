import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseOptions } from '../../src/engine/open-engine.js';
import { openLine, type Line } from '../../test/support/line.js';
import { getFreePort } from '../../test/support/services/free-port.js';
import {
  askRedis,
  startRedis,
  type RunningRedis,
} from '../../test/support/services/redis-server.js';
import { Child } from '../shared/child.js';
import { cli } from '../shared/service.js';
import { MortalPostgres } from './mortal-postgres.js';
import { serverNames, workerNames, type EngineKind, type FaultKind } from './schedule.js';
import { Supervised } from './supervised.js';

export interface StandOptions {
  readonly engine: EngineKind;
  readonly leaseMs: number;
  readonly heartbeatIntervalMs: number;
  /** fsync as in production. */
  readonly durable: boolean;
}

const concurrency = 20;

export interface Services {
  readonly postgres: MortalPostgres;
  /** Null: the servers share Postgres alone. */
  readonly redis: RunningRedis | null;
}

/** All that can be killed: servers, workers, and what they lean on, with a line to each. */
export class Stand implements AsyncDisposable {
  readonly processes = new Map<string, Supervised>();
  /** By kind of fault and target. */
  readonly #lines = new Map<string, Line>();
  readonly serverUrls: string[] = [];
  readonly serverOf = new Map<string, string>();
  readonly #options: StandOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-chaos-'));
  #services: Services | null = null;

  private constructor(options: StandOptions) {
    this.#options = options;
  }

  static async start(options: StandOptions): Promise<Stand> {
    const stand = new Stand(options);
    try {
      await stand.#start();
      return stand;
    } catch (error) {
      await stand[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Of the workers: one file for each. */
  get logs(): readonly string[] {
    return workerNames.map((name) => this.#logOf(name));
  }

  /** Where the truth is when the servers have stopped. */
  get database(): DatabaseOptions {
    return this.#services === null
      ? { kind: 'pglite', dataDir: this.#dataFolder }
      : { kind: 'postgres', url: this.#services.postgres.url };
  }

  /** Null: the embedded database needs none. */
  get services(): Services | null {
    return this.#services;
  }

  async flushRedis(): Promise<void> {
    const redis = this.#services?.redis ?? null;
    if (redis !== null) await askRedis(redis.url, 'flushall');
  }

  /** One key of the ready queue: of any kind with the same chance, then any key of that kind. */
  async eraseOneKey(random: () => number): Promise<void> {
    const redis = this.#services?.redis ?? null;
    if (redis === null) return;
    const { url } = redis;
    const keys = ((await askRedis(url, 'keys', '*')) as string[]).toSorted();
    const kinds = [...new Set(keys.map(kindOfKey))];
    const kind = kinds[Math.floor(random() * kinds.length)];
    const ofKind = keys.filter((one) => kindOfKey(one) === kind);
    const key = ofKind[Math.floor(random() * ofKind.length)];
    if (key !== undefined) await askRedis(url, 'del', key);
  }

  process(name: string): Supervised {
    const process = this.processes.get(name);
    if (process === undefined) throw new Error(`There is no ${name}`);
    return process;
  }

  /** The one that a fault of this kind cuts. */
  line(kind: FaultKind, target: string): Line {
    const line = this.#lines.get(`${kind} ${target}`);
    if (line === undefined) throw new Error(`There is no line for ${kind} ${target}`);
    return line;
  }

  async ready(): Promise<void> {
    await Promise.all([...this.processes.values()].map((process) => process.ready()));
  }

  /** SIGTERM to all, workers first. */
  async terminate(): Promise<void> {
    await Promise.all(workerNames.map((name) => this.process(name).terminate()));
    const servers = serverNames[this.#options.engine];
    await Promise.all(servers.map((name) => this.process(name).terminate()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.processes.values()].map((process) => process.close()));
    await Promise.all([...this.#lines.values()].map((line) => line.close()));
    await this.#services?.redis?.stop();
    await this.#services?.postgres.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #start(): Promise<void> {
    const { engine, durable } = this.#options;
    if (engine !== 'embedded') {
      const postgres = await MortalPostgres.start(durable);
      this.#services = { postgres, redis: engine === 'postgres' ? await startRedis() : null };
    }
    const ports: number[] = [];
    for (const name of serverNames[engine]) ports.push(await this.#addServer(name));
    for (const [index, name] of workerNames.entries()) {
      const server = index % ports.length;
      this.serverOf.set(name, serverNames[engine][server] ?? '');
      await this.#addWorker(name, ports[server] ?? 0);
    }
    await this.ready();
  }

  async #addServer(name: string): Promise<number> {
    const port = await getFreePort();
    const where = await this.#whereToServe(name);
    const { leaseMs, heartbeatIntervalMs } = this.#options;
    const server = new Supervised(
      () =>
        new Child({
          args: [cli, 'serve', '--port', String(port), '--log-level', 'warn', ...where],
          env: {
            SLUICE_DRAIN_MS: '0',
            SLUICE_LEASE_MS: String(leaseMs),
            SLUICE_HEARTBEAT_INTERVAL_MS: String(heartbeatIntervalMs),
          },
        }),
    );
    this.serverUrls.push(`http://127.0.0.1:${port}`);
    this.processes.set(name, server);
    server.start();
    // The first one makes the schema; a database folder takes its time.
    await server.ready();
    return port;
  }

  async #whereToServe(name: string): Promise<readonly string[]> {
    if (this.#services === null) return ['--data', this.#dataFolder];
    const { postgres, redis } = this.#services;
    const toPostgres = await this.#addLine('cut postgres', name, portOf(postgres.url));
    const databaseUrl = new URL(postgres.url);
    databaseUrl.port = String(portOf(toPostgres.url));
    const toDatabase = ['--database-url', databaseUrl.href];
    if (redis === null) return toDatabase;
    const toRedis = await this.#addLine('cut redis', name, redis.port);
    return [...toDatabase, '--redis-url', toRedis.url];
  }

  async #addWorker(name: string, serverPort: number): Promise<void> {
    const line = await this.#addLine('cut worker', name, serverPort);
    const url = `http://127.0.0.1:${portOf(line.url)}`;
    const script = join(import.meta.dirname, 'worker-process.mjs');
    const args = [script, url, name, this.#logOf(name), String(concurrency)];
    const worker = new Supervised(() => new Child({ args }));
    this.processes.set(name, worker);
    worker.start();
  }

  async #addLine(kind: FaultKind, target: string, port: number): Promise<Line> {
    const line = await openLine(port);
    this.#lines.set(`${kind} ${target}`, line);
    return line;
  }

  get #dataFolder(): string {
    return join(this.#folder, 'data');
  }

  #logOf(name: string): string {
    return join(this.#folder, `${name}.log`);
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

/** `sluice:{installation}:2:parked:…` is a `parked`. */
function kindOfKey(key: string): string {
  return key.replace(/^[^}]*\}:\d+:/, '').replace(/:.*/s, '');
}
