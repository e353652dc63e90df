import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { NodeHttpApi } from '../../src/client/node-http-api.js';
import type { SluiceApi } from '../../src/protocol/api.js';
import type { ListedTask, ListRequest } from '../../src/protocol/tasks-api.js';
import { getFreePort } from '../../test/support/services/free-port.js';
import { Child } from '../shared/child.js';
import { LabDatabase } from '../shared/database.js';
import { cli } from '../shared/service.js';
import type { FleetSize } from './case.js';
import type { CaseClock } from './case-clock.js';
import { ModelServer } from './model-server.js';
import { ransOf } from './rans.js';
import { models, type Arrival, type Ran } from './work.js';

export interface StandOptions extends FleetSize {
  /** Null: the embedded database. */
  readonly postgresUrl: string | null;
}

export interface SluiceRun {
  readonly rans: readonly Ran[];
  /** When the database gave each task to a worker, by its clock. */
  readonly claimedAt: ReadonlyMap<number, number>;
}

const submitEveryMs = 50;
const lookEveryMs = 100;
/** The circuit of a queue is open for 5 minutes at most: whatever takes longer hangs. */
const patienceMs = 600_000;

/** `sluice serve`, workers as processes of their own, and the models that their tasks call. */
export class SluiceStand implements AsyncDisposable {
  readonly models: ModelServer;
  readonly url: string;
  readonly #database: Store;
  readonly #processes: Child[] = [];

  private constructor(port: number, models: ModelServer, database: Store) {
    this.url = `http://127.0.0.1:${port}`;
    this.models = models;
    this.#database = database;
  }

  static async start({ postgresUrl, workers, slots }: StandOptions): Promise<SluiceStand> {
    const port = await getFreePort();
    const database = await openStore(postgresUrl);
    const stand = new SluiceStand(port, await ModelServer.start(), database);
    try {
      const where = ['--port', String(port), ...database.args];
      await stand.#start([cli, 'serve', ...where, '--log-level', 'error']);
      await Promise.all(Array.from({ length: workers }, (_, n) => stand.#startWorker(n, slots)));
      return stand;
    } catch (error) {
      await stand[Symbol.asyncDispose]();
      throw error;
    }
  }

  get api(): SluiceApi {
    return new NodeHttpApi(this.url);
  }

  /** So many calls of each model in any window of so many seconds. */
  async limitEach(rate: number, perSeconds: number): Promise<void> {
    const limits = [{ unit: 'requests', rate, perSeconds, burst: null }];
    await Promise.all(models.map((model) => this.api.putQueue(model, { limits })));
  }

  /** Submits each when it is due, and answers when the last one has completed. */
  async run(arrivals: readonly Arrival[], clock: CaseClock): Promise<SluiceRun> {
    await this.#submitAll(arrivals, clock);
    const views = await this.#untilCompleted(arrivals.length);
    const byTask = (at: (view: ListedTask) => Date | null) =>
      new Map(views.map((view) => [Number(view.parameters?.task), at(view)?.getTime() ?? 0]));
    const answeredAt = byTask(({ completedAt }) => completedAt);
    return {
      rans: ransOf(arrivals, await this.models.log(), answeredAt, clock),
      claimedAt: byTask(({ startedAt }) => startedAt),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.kill()));
    await this.models[Symbol.asyncDispose]();
    await this.#database.drop();
  }

  async #startWorker(number: number, slots: number): Promise<void> {
    const module = join(import.meta.dirname, 'tasks.mjs');
    const settings = ['--name', `worker-${number + 1}`, '--concurrency', String(slots)];
    await this.#start([cli, 'worker', '--url', this.url, '--module', module, ...settings]);
  }

  async #start(args: readonly string[]): Promise<void> {
    const process = new Child({ args, env: { MODELS_URL: this.models.url } });
    this.#processes.push(process);
    await process.ready;
  }

  async #submitAll(arrivals: readonly Arrival[], clock: CaseClock): Promise<void> {
    for (let next = 0; next < arrivals.length;) {
      const nowMs = clock.nowMs();
      const due = arrivals.slice(next).filter(({ arrivedMs }) => arrivedMs <= nowMs);
      await this.#submit(due, clock);
      next += due.length;
      const nextMs = arrivals[next]?.arrivedMs ?? 0;
      await clock.until(Math.max(nextMs, nowMs + submitEveryMs * clock.timeScale));
    }
  }

  async #submit(due: readonly Arrival[], clock: CaseClock): Promise<void> {
    if (due.length === 0) return;
    const drafts = due.map(({ task, model, ms }) => {
      return { taskType: 'infer', queue: model, parameters: { task, ms: clock.realMs(ms) } };
    });
    const outcomes = await this.api.submitMany(drafts);
    const refused = outcomes.find(({ kind }) => kind === 'refused');
    if (refused !== undefined) throw new Error(`A task was refused: ${JSON.stringify(refused)}`);
  }

  async #untilCompleted(tasks: number): Promise<readonly ListedTask[]> {
    let done = 0;
    let changedMs = performance.now();
    while (performance.now() - changedMs < patienceMs) {
      const nowDone = await this.models.countDone();
      if (nowDone !== done) changedMs = performance.now();
      done = nowDone;
      // The models are asked first: it costs the server that is measured nothing.
      const views = done < tasks ? [] : await everyTask(this.api);
      if (views.length === tasks && views.every(hasCompleted)) return views;
      await delay(lookEveryMs);
    }
    throw new Error(`${done} of ${tasks} were answered, and then nothing for a long time`);
  }
}

function hasCompleted({ status }: ListedTask): boolean {
  return status === 'completed';
}

async function everyTask(api: SluiceApi): Promise<readonly ListedTask[]> {
  const views: ListedTask[] = [];
  const whole: ListRequest = { limit: 1_000, include: ['parameters'] };
  let page: ListRequest | null = whole;
  while (page !== null) {
    const { items, nextCursor } = await api.listTasks({}, page);
    views.push(...items);
    page = nextCursor === null ? null : { ...whole, cursor: nextCursor };
  }
  return views;
}

/** Where the server keeps its tasks, as it is told on the command line. */
interface Store {
  readonly args: readonly string[];
  drop(): Promise<void>;
}

async function openStore(postgresUrl: string | null): Promise<Store> {
  if (postgresUrl !== null) {
    const database = await LabDatabase.create(postgresUrl);
    return { args: ['--database-url', database.url], drop: () => database.drop() };
  }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-lab-'));
  const drop = async () => rmSync(folder, { recursive: true, force: true });
  return { args: ['--data', folder], drop };
}
