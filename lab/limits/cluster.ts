import { join } from 'node:path';
import type { RateLimit } from '../../src/domain/queue-settings.js';
import { Child } from '../shared/child.js';
import {
  prepareService,
  Service,
  type ServiceOptions,
  type ServiceParts,
} from '../shared/service.js';
import { readClaims, type Claim } from './claims.js';
import { startStandIn, type StandIn } from './stand-in.js';

export type ClusterOptions = Pick<ServiceOptions, 'servers' | 'ready' | 'serveArgs'>;

export interface WorkersOptions {
  readonly workers: number;
  readonly concurrency: number;
  /** Which servers they talk to, by turns; absent: all. */
  readonly at?: readonly number[];
}

const maxWorkerProcesses = 4;

/** Servers and workers as processes, and a stand-in for the service that tasks call. */
export class Cluster extends Service {
  readonly standIn: StandIn;
  readonly #workers: Child[] = [];

  private constructor(parts: ServiceParts, standIn: StandIn) {
    super(parts);
    this.standIn = standIn;
  }

  static async start(postgresUrl: string, options: ClusterOptions): Promise<Cluster> {
    const parts = await prepareService(postgresUrl, options);
    const cluster = new Cluster(parts, await startStandIn());
    await cluster.startServers();
    return cluster;
  }

  get workerPids(): readonly number[] {
    return this.#workers.map(({ pid }) => pid);
  }

  async startWorkers({ workers, concurrency, at }: WorkersOptions): Promise<void> {
    const urls = Array.from({ length: workers }, (_, index) => {
      const server = at === undefined ? index % this.urls.length : at[index % at.length];
      return this.url(server ?? 0);
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

  claims(): Promise<readonly Claim[]> {
    return readClaims(this.database);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((child) => child.kill()));
    await this.standIn.close();
    await super[Symbol.asyncDispose]();
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
