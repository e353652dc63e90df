import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TaskId } from '../../src/domain/ids.js';
import type { TaskDraft, TaskView } from '../../src/protocol/tasks-api.js';
import { until } from '../../test/support/until.js';
import { Child } from '../shared/child.js';
import {
  cli,
  prepareService,
  Service,
  type ServiceOptions,
  type ServiceParts,
} from '../shared/service.js';
import { readNotes, type Note } from './run-log.js';

export interface FleetWorkerOptions {
  readonly name: string;
  readonly concurrency: number;
  /** Which server it talks to. */
  readonly at?: number;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Absent: the tasks of this folder. */
  readonly module?: string;
}

export interface FleetWorker extends FleetWorkerOptions {
  readonly process: Child;
  readonly id: string;
}

/** Ends a scenario that hangs. */
const patienceMs = 120_000;
const lookEveryMs = 20;
const ownTasks = join(import.meta.dirname, 'tasks.mjs');

/** Servers and `sluice worker` processes, whose handlers write down what they do. */
export class Fleet extends Service {
  readonly #folder: string;
  readonly #workers = new Set<Child>();

  private constructor(parts: ServiceParts) {
    super(parts);
    this.#folder = mkdtempSync(join(tmpdir(), 'sluice-workers-'));
  }

  static async start(postgresUrl: string, options: Partial<ServiceOptions> = {}): Promise<Fleet> {
    const whole = { servers: 1, ready: 'memory', ...options } as const;
    const fleet = new Fleet(await prepareService(postgresUrl, whole));
    await fleet.startServers();
    return fleet;
  }

  /** A file of its own for what a worker leaves behind. */
  file(name: string): string {
    return join(this.#folder, name);
  }

  async startWorker(options: FleetWorkerOptions): Promise<FleetWorker> {
    const { name, concurrency, at = 0, args = [], env, module = ownTasks } = options;
    const process = new Child({
      args: [
        ...[cli, 'worker', '--url', this.url(at), '--name', name],
        ...['--module', module],
        ...['--concurrency', String(concurrency), ...args],
      ],
      env: { RUN_LOG: this.file('runs'), WORKER_NAME: name, ...env },
    });
    this.#workers.add(process);
    const [, id = ''] = /^Worker (\S+) is ready/.exec(await process.ready) ?? [];
    return { ...options, process, id };
  }

  startWorkers(all: readonly FleetWorkerOptions[]): Promise<FleetWorker[]> {
    return Promise.all(all.map((one) => this.startWorker(one)));
  }

  notes(): readonly Note[] {
    return readNotes(this.file('runs'));
  }

  /** The first note that is like it. */
  async note(awaited: string, isIt: (note: Note) => boolean): Promise<Note> {
    return this.until(awaited, () => this.notes().find(isIt));
  }

  async until<Answer>(awaited: string, probe: () => Answer | Promise<Answer>) {
    return until(awaited, probe, { deadlineMs: patienceMs, everyMs: lookEveryMs });
  }

  task(taskId: TaskId): Promise<TaskView> {
    return this.api().getTask(taskId, { history: true });
  }

  async countCompleted(): Promise<number> {
    const [row] = await this.database.query<{ count: number }>(
      "select count(*)::integer as count from sluice.task_history where status = 'completed'",
    );
    return row?.count ?? 0;
  }

  async untilEmpty(): Promise<void> {
    await this.until('all tasks to end', async () => (await this.countLiving()) === 0);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.kill()));
    await super[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export function steps(length: number, ms: number, queue = 'default'): TaskDraft[] {
  return Array.from({ length }, () => ({ taskType: 'step', queue, parameters: { ms } }));
}
