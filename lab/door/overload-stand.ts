import { join } from 'node:path';
import type { Lab } from '../shared/lab.js';
import { ProcessTree } from '../shared/process-tree.js';
import { processMegabytes } from '../workers/process-memory.js';
import { Fleet, type FleetWorker } from '../workers/fleet.js';
import { letOthersFirst, postgresPids, putOnCore } from './cores.js';
import { Flood, type FloodOptions, type FloodReport } from './flood.js';

/** More than the worker does while those who were refused stay away. */
export const ceiling = 5_000;
/** Enough to have something to do while a report or a poll waits for its answer. */
const concurrency = 400;
const warmUpMs = 3_000;
const probesPerSecond = 20;
const sampleEveryMs = 1_000;
const tasks = join(import.meta.dirname, 'tasks.mjs');

export interface PhaseOptions {
  readonly title: string;
  readonly load: FloodOptions['load'];
  readonly durationMs: number;
  /** What a task costs its worker, in microseconds of CPU. */
  readonly workUs: number;
}

export interface Sample {
  readonly atMs: number;
  readonly serverMb: number;
  readonly living: number;
}

export interface Phase {
  /** When the last request was sent, by this process. */
  readonly endedMs: number;
  readonly completedPerSecond: number;
  readonly submits: FloodReport;
  readonly health: FloodReport;
  readonly samples: readonly Sample[];
  /** Of one core. */
  readonly cpu: { readonly server: number; readonly worker: number; readonly postgres: number };
}

/** One server with a ceiling, one worker that is always busy, and a load from elsewhere. */
export class OverloadStand implements AsyncDisposable {
  readonly fleet: Fleet;
  /** False: the load shares all cores with what it loads. */
  readonly isApart: boolean;
  readonly #lab: Lab;
  readonly #worker: FleetWorker;
  readonly #postgres: ProcessTree;

  private constructor(lab: Lab, fleet: Fleet, worker: FleetWorker, postgres: readonly number[]) {
    this.#lab = lab;
    this.fleet = fleet;
    this.#worker = worker;
    this.#postgres = new ProcessTree(postgres[0] ?? null);
    this.isApart =
      putOnCore('server', [...fleet.serverPids, ...postgres]) &&
      putOnCore('workers', [worker.process.pid]);
  }

  static async open(lab: Lab): Promise<OverloadStand> {
    const fleet = await Fleet.start(lab.postgresUrl, {
      serveArgs: ['--max-active', String(ceiling)],
    });
    const worker = await fleet.startWorker({ name: 'one', concurrency, module: tasks });
    const [row] = await fleet.database.query<{ pid: number }>('select pg_backend_pid() as pid');
    return new OverloadStand(lab, fleet, worker, postgresPids(row?.pid ?? 0));
  }

  /** A load from a full system on, so that what is measured is not how it fills. */
  async run({ title, load, durationMs, workUs }: PhaseOptions): Promise<Phase> {
    const body = { task_type: 'work', priority: 'high', parameters: { us: workUs } } as const;
    await this.#fill(workUs);
    const submits = this.#flood('submits', { path: '/api/v1/tasks', body, load, durationMs });
    letOthersFirst(submits.pid);
    const health = this.#flood('health', {
      path: '/healthz',
      load: { rate: probesPerSecond },
      durationMs,
    });
    await this.#lab.progress.wait(`${title}, warming up`, warmUpMs);
    const from = await this.#look();
    const samples: Sample[] = [];
    const sampling = setInterval(() => void this.#sample(samples), sampleEveryMs);
    await this.#lab.progress.wait(title, durationMs);
    clearInterval(sampling);
    const endedMs = performance.now();
    const to = await this.#look();
    const seconds = (to.at.getTime() - from.at.getTime()) / 1000;
    const [submitted, healthy] = await Promise.all([submits.done(), health.done()]);
    return {
      endedMs,
      completedPerSecond: (await this.#completedWithin(from.at, to.at)) / seconds,
      submits: submitted,
      health: healthy,
      samples,
      cpu: {
        server: (to.server - from.server) / seconds,
        worker: (to.worker - from.worker) / seconds,
        postgres: (to.postgres - from.postgres) / seconds,
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fleet[Symbol.asyncDispose]();
  }

  /** Some are refused: it may be full already. */
  async #fill(workUs: number): Promise<void> {
    const draft = { taskType: 'work', priority: 'high', parameters: { us: workUs } } as const;
    await this.fleet.api().submitMany(Array.from({ length: ceiling }, () => draft));
  }

  #flood(name: string, options: Omit<FloodOptions, 'url' | 'warmUpMs'>): Flood {
    const report = this.fleet.file(`${name}.json`);
    const flood = new Flood(report, { ...options, url: this.fleet.url(0), warmUpMs });
    if (this.isApart) putOnCore('load', [flood.pid]);
    return flood;
  }

  async #look() {
    const [row] = await this.fleet.database.query<{ at: Date }>('select clock_timestamp() as at');
    return {
      at: row?.at ?? new Date(),
      server: new ProcessTree(this.fleet.serverPids[0] ?? null).cpuSeconds(),
      worker: new ProcessTree(this.#worker.process.pid).cpuSeconds(),
      postgres: this.#postgres.cpuSeconds(),
    };
  }

  async #completedWithin(from: Date, to: Date): Promise<number> {
    const [row] = await this.fleet.database.query<{ count: number }>(
      `select count(*)::integer as count from sluice.task_history
       where status = 'completed' and ended_at >= $1 and ended_at < $2`,
      [from, to],
    );
    return row?.count ?? 0;
  }

  async #sample(samples: Sample[]): Promise<void> {
    const [pid = 0] = this.fleet.serverPids;
    const living = await this.fleet.countLiving();
    samples.push({ atMs: performance.now(), serverMb: processMegabytes(pid, 'VmRSS'), living });
  }
}
