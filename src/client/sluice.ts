import { SluiceError } from '../domain/errors.js';
import type { Follower, Following } from '../engine/cluster-events.js';
import type { OpenEngineOptions } from '../engine/open-engine.js';
import type { PayloadLogging } from '../engine/payload-log.js';
import { taskPolicy, type ByPriority } from '../domain/task-policy.js';
import type { SubmissionLimit } from '../domain/submission-limit.js';
import type { ProgramsApi } from '../protocol/api.js';
import { defined } from '../protocol/defined.js';
import type { TaskEvent } from '../protocol/events.js';
import { optionErrors, type KindsOf } from '../protocol/options.js';
import { describeErrors } from '../protocol/problem-wire.js';
import { memoryDataDir } from '../runtime/config.js';
import { transitionModes, type TransitionMode } from '../runtime/log-format.js';
import type { Logger } from '../runtime/log.js';
import type { TaskHandler } from '../worker/handler.js';
import { Worker, type WorkerOptions } from '../worker/worker.js';
import { overlapping, SluiceClient } from './sluice-client.js';
import { closedError } from './until-closed.js';

export interface OpenOptions {
  /** Where the embedded database lives; `:memory:` keeps nothing. Default `.sluice`. */
  readonly dataDir?: string;
  /** A Postgres server instead of the embedded one. */
  readonly databaseUrl?: string;
  /** With a Postgres server: the ready queue is in Redis, and no process leads. */
  readonly redisUrl?: string;
  /** `submit`: submits, reads and cancels; it hands out nothing and never leads. */
  readonly role?: 'serve' | 'submit';
  /** For how many days tasks that completed, failed or were cancelled are kept. Default 7. */
  readonly retainEndedDays?: number;
  /** For how many days dead letters are kept. Default 30. */
  readonly retainDeadLettersDays?: number;
  /** For how many days the audit is kept. Default 365. */
  readonly auditDays?: number;
  /** For how many days ahead a task may be scheduled; the same in every process. Default 366. */
  readonly maxScheduleDays?: number;
  /** How many tasks may be active, in all; the same in every process. Default 10,000,000. */
  readonly maxActive?: number;
  /** How many tasks may be submitted for one `userId`; the same in every process. Default: any number. */
  readonly submitLimitPerUser?: readonly SubmissionLimit[];
  /** Retries of a task that names none, by priority. Default 5, 3 and 2. Like the four below: each process its own. */
  readonly maxRetries?: Partial<ByPriority>;
  /** Seconds that one attempt may take of a task that names none. Default 300, 600 and 900. */
  readonly timeoutSeconds?: Partial<ByPriority>;
  /** The longest pause before a retry. Default 10, 30 and 60. */
  readonly maxBackoffSeconds?: Partial<ByPriority>;
  /** By error code, `WORKER_LOST` and `TIMEOUT` too: it is retried only while the task has had fewer retries. */
  readonly maxRetriesByError?: Readonly<Record<string, number>>;
  /** Tasks that name no dispatch deadline fail when no worker took them for so long. Default: never. */
  readonly dispatchDeadlineSeconds?: number;
  /** How long a prefetched task may wait for its start before it goes back. Default 30,000. */
  readonly assignmentTimeoutMs?: number;
  /** Hears of every change of state that this process brings about, after its commit. */
  readonly onTaskEvent?: (event: TaskEvent) => void;
  readonly log?: Logger;
  /**
   * Which changes of a task's state are written to `log`: `all`, `problems` (retries, lapses, dead letters, refusals,
   * cancellations, circuits, suspended workers) or `off`. Default `problems`.
   */
  readonly logTransitions?: TransitionMode;
  /** Writes parameters, results and errors to the log, as `redact` leaves them. */
  readonly logPayloads?: PayloadLogging;
}

const optionKinds: KindsOf<OpenOptions> = {
  dataDir: 'string',
  databaseUrl: 'string',
  redisUrl: 'string',
  role: ['serve', 'submit'],
  retainEndedDays: 'number',
  retainDeadLettersDays: 'number',
  auditDays: 'number',
  maxScheduleDays: 'number',
  maxActive: 'number',
  submitLimitPerUser: 'array',
  maxRetries: 'object',
  timeoutSeconds: 'object',
  maxBackoffSeconds: 'object',
  maxRetriesByError: 'object',
  dispatchDeadlineSeconds: 'number',
  assignmentTimeoutMs: 'number',
  onTaskEvent: 'function',
  log: 'object',
  logTransitions: transitionModes,
  logPayloads: 'object',
};

/** What a program in Node does with Sluice: all that a client does, and workers. */
export class Sluice extends SluiceClient<ProgramsApi> {
  readonly #workers = new Set<Worker>();
  /** The engine of this process logs what becomes of attempts. Its workers need not do it again. */
  #logsTransitions = false;
  #events: { follow(follower: Follower): Following } | null = null;

  /** What a dashboard follows; null when Sluice is far away. */
  get events(): { follow(follower: Follower): Following } | null {
    return this.#events;
  }

  /** Embedded: the engine runs in this process, on an embedded Postgres or on a server. */
  static async open(options: OpenOptions = {}): Promise<Sluice> {
    checkOpenOptions(options);
    const database = databaseOf(options);
    const { redisUrl, role, log, logTransitions, logPayloads } = options;
    if (redisUrl !== undefined && database.kind === 'pglite') {
      throw new TypeError('redisUrl needs a databaseUrl: the embedded database has one process');
    }
    // Loaded when it is needed: who only connects pays for neither database nor engine.
    const [{ openEngine }, { InProcessApi }] = await Promise.all([
      import('../engine/open-engine.js'),
      import('./in-process-api.js'),
    ]);
    const engine = await openEngine({
      database,
      ...(redisUrl === undefined ? {} : { redisUrl }),
      ...(role === undefined ? {} : { role }),
      settings: defined({
        retainEndedDays: options.retainEndedDays,
        retainDeadLettersDays: options.retainDeadLettersDays,
        auditDays: options.auditDays,
        maxScheduleDays: options.maxScheduleDays,
        maxActive: options.maxActive,
        submitLimitPerUser: options.submitLimitPerUser,
        unstartedMs: options.assignmentTimeoutMs,
        tasks: taskPolicy(options),
      }),
      ...(log === undefined ? {} : { log }),
      ...(logTransitions === undefined ? {} : { logTransitions }),
      // Handlers run in this process: what they throw is for the same log.
      logThrown: true,
      ...(logPayloads === undefined ? {} : { logPayloads }),
    });
    if (options.onTaskEvent !== undefined) engine.subscribe(options.onTaskEvent);
    const sluice = new Sluice(new InProcessApi(engine), () => engine.close(), overlapping);
    sluice.#logsTransitions = log !== undefined && logTransitions !== 'off';
    sluice.#events = engine;
    return sluice;
  }

  /** Takes tasks once it is started. Stopped by `close` at the latest. */
  worker(handlers: readonly TaskHandler[], options: WorkerOptions = {}): Worker {
    if (this.isClosed) throw closedError();
    const defaults = {
      ...(this.tracing === null ? {} : { tracing: this.tracing }),
      ...(this.#logsTransitions ? ({ logTransitions: 'off' } as const) : {}),
    };
    const worker = new Worker(this.workersApi, handlers, { ...defaults, ...options });
    this.#workers.add(worker);
    void worker.stopped.then(() => this.#workers.delete(worker));
    return worker;
  }

  /** Lets the workers made here finish first: a handler that finishes may still submit. */
  protected override async letGo(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await super.letGo();
  }
}

/** A name that is not quite right would open the embedded database, and tasks would be there unseen. */
function checkOpenOptions(options: OpenOptions): void {
  const errors = optionErrors(optionKinds, options);
  if (errors.length === 0) return;
  const detail =
    `Sluice.open: ${describeErrors(errors)}\nIt takes ${Object.keys(optionKinds).join(', ')}. ` +
    'For a server that runs elsewhere there is connect(url).';
  throw new SluiceError('invalid_request', detail, { errors });
}

function databaseOf({ dataDir, databaseUrl }: OpenOptions): OpenEngineOptions['database'] {
  if (databaseUrl !== undefined) {
    if (dataDir === undefined) return { kind: 'postgres', url: databaseUrl };
    throw new TypeError('dataDir and databaseUrl exclude each other: name one of them');
  }
  if (dataDir === memoryDataDir) return { kind: 'pglite' };
  return { kind: 'pglite', dataDir: dataDir ?? '.sluice' };
}
