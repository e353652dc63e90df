import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, inject, onTestFinished, vi } from 'vitest';

import type { AttemptError } from '../../src/domain/attempt-error.js';
import { SluiceError, type ErrorCode } from '../../src/domain/errors.js';
import type { TaskId, WorkerId } from '../../src/domain/ids.js';
import type { JsonValue } from '../../src/domain/json.js';
import type { TaskState } from '../../src/domain/task-state.js';
import { openEngine, type Engine, type OpenEngineOptions } from '../../src/engine/open-engine.js';
import { PollWaiter } from '../../src/engine/poll-waiter.js';
import type { EngineSettings } from '../../src/engine/settings.js';
import type { TaskDraft, TaskView } from '../../src/protocol/tasks-api.js';
import type {
  ClaimedTask,
  Held,
  PollRequest,
  Registration,
  Report,
  ReportAnswer,
} from '../../src/protocol/workers-api.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { createTestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { freshPglite } from '../support/pglite.js';

/** Ticks in a hurry, and a turn that does not lapse when the machine is busy. */
export const quickTicks: Partial<EngineSettings> = {
  sweepIntervalMs: 20,
  discoverIntervalMs: 20,
  servingLeaseMs: 60_000,
};

export interface EngineUnderTest {
  readonly on: 'PGlite' | 'Postgres' | 'Redis';
  readonly engine: Engine;
  readonly clock: ManualClock;
}

const patientLeaseMs = 600_000;
/** However far a test moves its clock, no worker is silent for longer. */
const foreverMs = 365 * 24 * 3_600_000;

/**
 * The same tests on embedded Postgres, on a server, and on one with Redis. One engine for all of them, since embedded
 * Postgres takes seconds to create: each test keeps to a queue of its own.
 */
export function describeOnEveryEngine(
  name: string,
  body: (under: () => EngineUnderTest) => void,
  settings: Partial<EngineSettings> = {},
): void {
  const open = async (
    on: EngineUnderTest['on'],
    where: Pick<OpenEngineOptions, 'database' | 'redisUrl'>,
  ): Promise<EngineUnderTest> => {
    const clock = new ManualClock(Date.now());
    const engine = await openEngine({
      ...where,
      clock,
      random: () => 0.5,
      settings: { ...quickTicks, leaseMs: foreverMs, ...settings },
    });
    return { on, engine, clock };
  };
  describe(`${name} on PGlite`, () => {
    let under: EngineUnderTest;
    beforeAll(async () => {
      under = await open('PGlite', { database: freshPglite() });
    });
    afterAll(() => under.engine.close());
    body(() => under);
  });
  describeOnPostgres(name, (server) => {
    let under: EngineUnderTest;
    beforeAll(async () => {
      under = await open('Postgres', { database: { kind: 'postgres', url: server().url } });
    });
    afterAll(() => under.engine.close());
    body(() => under);
  });
  describeOnPostgres(`${name} with Redis`, (server) => {
    let under: EngineUnderTest;
    beforeAll(async () => {
      const database = { kind: 'postgres', url: server().url } as const;
      under = await open('Redis', { database, redisUrl: inject('redisUrl') });
    });
    afterAll(() => under.engine.close());
    body(() => under);
  });
}

export interface TestServer {
  readonly url: string;
  /** Closed after the test at the latest. */
  open(options?: Omit<Partial<OpenEngineOptions>, 'database'>): Promise<Engine>;
  /** As somebody else's connection sees it. */
  sql<Row>(text: string, parameters?: readonly unknown[]): Promise<Row[]>;
  /** A connection of its own, for a transaction that stays open; ended after the test. */
  connect(): Promise<Client>;
}

/** Several engines, and connections besides them, on one database of a Postgres server. */
export function describeOnPostgres(name: string, body: (server: () => TestServer) => void): void {
  describe(`${name} on Postgres`, () => {
    let server: TestServer;
    let drop: () => Promise<void>;
    const engines: Engine[] = [];
    const clients: Client[] = [];

    beforeAll(async () => {
      const database = await createTestDatabase();
      drop = () => database.drop();
      const connect = async (): Promise<Client> => {
        const client = new Client({ connectionString: database.url });
        await client.connect();
        clients.push(client);
        return client;
      };
      server = {
        url: database.url,
        connect,
        sql: async <Row>(text: string, parameters: readonly unknown[] = []) => {
          const client = new Client({ connectionString: database.url });
          await client.connect();
          try {
            return (await client.query(text, [...parameters])).rows as Row[];
          } finally {
            await client.end();
          }
        },
        open: async (options = {}) => {
          const { settings, ...rest } = options;
          // A test worker beats only when it is told to, and a busy machine may take its time.
          const { sweepIntervalMs = 0 } = settings ?? {};
          const leaseMs = Math.max(patientLeaseMs, sweepIntervalMs);
          const engine = await openEngine({
            ...rest,
            database: { kind: 'postgres', url: database.url },
            settings: { ...quickTicks, leaseMs, ...settings },
          });
          engines.push(engine);
          return engine;
        },
      };
    });
    afterEach(async () => {
      await Promise.all(clients.splice(0).map((client) => client.end()));
      const opened = engines.splice(0);
      await Promise.all(opened.map((engine) => engine.close()));
      // Nobody is left. If the test flushed Redis, the next one would have to wait for their lease.
      if (opened.length > 0) await server.sql('delete from sluice.serving');
    });
    afterAll(() => drop());
    body(() => server);
  });
}

/** A worker without a process: a test decides what it does and when. */
export class TestWorker {
  readonly #engine: Engine;
  readonly workerId: WorkerId;

  constructor(engine: Engine, workerId: WorkerId) {
    this.#engine = engine;
    this.workerId = workerId;
  }

  static async register(engine: Engine, registration: Registration = {}): Promise<TestWorker> {
    const { workerId } = await engine.register({ capacity: 1000, ...registration });
    return new TestWorker(engine, workerId);
  }

  /** What there is now, without waiting. */
  async look(count = 1, request: Partial<PollRequest> = {}): Promise<readonly ClaimedTask[]> {
    const poll = { availableCapacity: count, ...request };
    return (await this.#engine.poll(this.workerId, poll)).tasks;
  }

  /** Exactly this many, as soon as they come. */
  async take(count: number, request: Partial<PollRequest> = {}): Promise<ClaimedTask[]> {
    const taken: ClaimedTask[] = [];
    const deadlineMs = performance.now() + 120_000;
    while (taken.length < count) {
      taken.push(...(await this.look(count - taken.length, { waitMs: 5_000, ...request })));
      if (performance.now() > deadlineMs) throw new Error(`only ${taken.length} of ${count} came`);
    }
    return taken;
  }

  async takeOne(request: Partial<PollRequest> = {}): Promise<ClaimedTask> {
    const [task] = await this.take(1, request);
    if (task === undefined) throw new Error('one task was asked for');
    return task;
  }

  async report(report: Report): Promise<ReportAnswer> {
    const [answer] = await this.#engine.report(this.workerId, [report]);
    if (answer === undefined) throw new Error('a report was not answered');
    return answer;
  }

  complete({ taskId, lease }: Held, result: JsonValue = null): Promise<ReportAnswer> {
    return this.report({ taskId, lease, status: 'completed', result });
  }

  completeAll(tasks: readonly Held[]): Promise<readonly ReportAnswer[]> {
    return this.#engine.report(
      this.workerId,
      tasks.map(({ taskId, lease }) => ({ taskId, lease, status: 'completed', result: null })),
    );
  }

  fail({ taskId, lease }: Held, error: Partial<AttemptError> = {}): Promise<ReportAnswer> {
    return this.report({ taskId, lease, status: 'failed', error: { ...broken, ...error } });
  }

  /** Where a lease is short and the machine may be busy. Answers with how to stop. */
  keepBeating(everyMs: number): () => void {
    const beating = setInterval(() => {
      const beat = { currentLoad: 0, status: 'active' } as const;
      this.#engine.heartbeat(this.workerId, beat).catch(() => undefined);
    }, everyMs);
    return () => {
      clearInterval(beating);
    };
  }

  beat(holding: readonly Held[]): ReturnType<Engine['heartbeat']> {
    return this.#engine.heartbeat(this.workerId, {
      currentLoad: holding.length,
      status: 'active',
      currentTasks: holding.map(({ taskId }) => taskId),
      leases: holding.map(({ lease }) => lease),
    });
  }
}

/** Begins polls, and resolves when so many of them have looked and wait, at whichever server. */
export async function untilWaiting<Polls>(
  begin: () => Polls,
  count = 1,
): Promise<{ polls: Polls }> {
  const wait = vi.spyOn(PollWaiter.prototype, 'wait');
  onTestFinished(() => wait.mockRestore());
  const before = wait.mock.calls.length;
  const polls = begin();
  await until('the polls to wait', () => wait.mock.calls.length >= before + count);
  return { polls };
}

export const broken: AttemptError = { code: 'BROKEN', message: 'it broke', retriable: true };

let queues = 0;

/** A queue that no other test of this file uses. */
export function freshQueue(): string {
  queues += 1;
  return `queue-${queues}`;
}

export async function untilStatus(
  engine: Engine,
  taskId: TaskId,
  ...wanted: TaskState[]
): Promise<TaskView> {
  return until(`task ${taskId} to be ${wanted.join(' or ')}`, async () => {
    const task = await engine.getTask(taskId);
    return wanted.includes(task.status) ? task : null;
  });
}

export async function submitAll(
  engine: Engine,
  drafts: readonly TaskDraft[],
): Promise<readonly TaskId[]> {
  const taskIds: TaskId[] = [];
  for (let from = 0; from < drafts.length; from += 5_000) {
    const outcomes = await engine.submitMany(drafts.slice(from, from + 5_000));
    for (const outcome of outcomes) {
      if (outcome.kind === 'refused') throw new Error(`refused: ${outcome.detail}`);
      taskIds.push(outcome.receipt.taskId);
    }
  }
  return taskIds;
}

export function drafts(count: number, draft: TaskDraft): TaskDraft[] {
  return Array.from({ length: count }, (_, index) => ({ ...draft, parameters: { index } }));
}

export function indexOf({ parameters }: Pick<ClaimedTask, 'parameters'>): number {
  return Number(parameters.index);
}

/** 0, 1, 2 … up to `count`; else where that order is first broken, short enough to read. */
export function disorder(tasks: readonly Pick<ClaimedTask, 'parameters'>[], count: number): string {
  const wrong = tasks.findIndex((task, index) => indexOf(task) !== index);
  if (wrong === -1) return tasks.length === count ? 'none' : `${tasks.length} of ${count}`;
  const around = tasks.slice(Math.max(0, wrong - 2), wrong + 5).map(indexOf);
  return `at ${wrong} of ${tasks.length}: … ${around.join(', ')} …`;
}

/** The code that a call was refused with; null when it was not. */
export async function refusal(call: Promise<unknown>): Promise<ErrorCode | null> {
  try {
    await call;
    return null;
  } catch (error) {
    if (error instanceof SluiceError) return error.code;
    throw error;
  }
}
