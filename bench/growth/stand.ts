import { Client } from 'pg';
import { LabDatabase } from '../../lab/shared/database.js';
import {
  askRedis,
  startRedis,
  type RunningRedis,
} from '../../test/support/services/redis-server.js';
import { makeEnded } from '../ended-tasks.js';
import { ProcessTree } from '../../lab/shared/process-tree.js';
import type { Values } from './measures.js';
import { postgresProcesses } from './postgres-processes.js';
import { SideProcess, type SideOptions } from './side-process.js';

/** One size of what grows. */
export interface Case extends Pick<SideOptions, 'waiting' | 'queues' | 'round'> {
  readonly title: string;
  /** Over the days before today. */
  readonly ended?: number;
}

export type Ready = 'memory' | 'redis';

export interface Held {
  readonly ownMegabytes: number;
  /** Null: there is none. */
  readonly redisMegabytes: number | null;
}

const daysOfEnded = 6;
const megabyte = 2 ** 20;

/** One case in a database, a Redis and a process of its own. */
export class Stand implements AsyncDisposable {
  readonly title: string;
  readonly rounds: Values[] = [];
  readonly #database: LabDatabase;
  readonly #redis: RunningRedis | null;
  readonly #side: SideProcess;
  readonly #own: ProcessTree;
  readonly #services: readonly ProcessTree[];

  private constructor(
    title: string,
    database: LabDatabase,
    redis: RunningRedis | null,
    side: SideProcess,
    services: readonly ProcessTree[],
  ) {
    this.title = title;
    this.#database = database;
    this.#redis = redis;
    this.#side = side;
    this.#own = new ProcessTree(side.pid);
    this.#services = services;
  }

  static async open(postgresUrl: string, ready: Ready, one: Case): Promise<Stand> {
    const { title, waiting, queues, round, ended = 0 } = one;
    const database = await LabDatabase.create(postgresUrl);
    const redis = ready === 'redis' ? await startRedis() : null;
    const redisUrl = redis?.url ?? null;
    const options = { databaseUrl: database.url, redisUrl, waiting, queues, round };
    const side = await SideProcess.start(options);
    const services = [await postgresProcesses(database), ...(await redisProcesses(redis))];
    const stand = new Stand(title, database, redis, side, services);
    await stand.#settle(ended);
    return stand;
  }

  async warmUp(): Promise<void> {
    await this.#side.round();
  }

  async round(): Promise<void> {
    const [ownBefore, servicesBefore] = this.#cpu();
    const values = await this.#side.round();
    const [ownAfter, servicesAfter] = this.#cpu();
    const serviceCpu = servicesAfter - servicesBefore;
    this.rounds.push({ ...values, ownCpu: ownAfter - ownBefore, serviceCpu });
  }

  /** After the last round. */
  async end(): Promise<Held> {
    const redisMegabytes = this.#redis === null ? null : await usedBy(this.#redis);
    return { ownMegabytes: await this.#side.end(), redisMegabytes };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#side[Symbol.dispose]();
    await this.#redis?.stop();
    await this.#database.drop();
  }

  #cpu(): readonly [number, number] {
    const ofServices = this.#services.map((tree) => tree.cpuSeconds());
    return [this.#own.cpuSeconds(), ofServices.reduce((sum, seconds) => sum + seconds, 0)];
  }

  /** What was just made is as if it had been there for long: autovacuum does not come in the middle. */
  async #settle(ended: number): Promise<void> {
    await this.#database.query('vacuum (analyze) sluice.tasks, sluice.task_inputs');
    if (ended > 0) {
      const client = new Client({ connectionString: this.#database.url });
      await client.connect();
      await makeEnded(client, ended, daysOfEnded);
      await client.end();
    }
    await this.#database.query('checkpoint');
  }
}

async function redisProcesses(redis: RunningRedis | null): Promise<ProcessTree[]> {
  return redis === null ? [] : [new ProcessTree(await askFor(redis, 'server', 'process_id'))];
}

async function usedBy(redis: RunningRedis): Promise<number> {
  return (await askFor(redis, 'memory', 'used_memory')) / megabyte;
}

async function askFor({ url }: RunningRedis, section: string, field: string): Promise<number> {
  const answer = String(await askRedis(url, 'info', section));
  const [, value] = new RegExp(`^${field}:(\\d+)`, 'm').exec(answer) ?? [];
  return Number(value);
}
