import { SluiceError, type ErrorCode } from '../../src/domain/errors.js';
import type { Engine } from '../../src/engine/engine.js';
import type { Clock } from '../../src/runtime/clock.js';
import { takeWritten } from './audit.js';
import { Ledger } from './ledger.js';
import { Random } from './random.js';
import { RuleBook } from './rule-book.js';
import { Server, ServerDownError, simulatedSettings, type WatchedReadyQueue } from './server.js';
import type { Stage } from './stage.js';
import { TaskBook } from './task-book.js';
import { Trace } from './trace.js';
import { Violation } from './violation.js';
import { beatIfDue } from './worker-deeds.js';
import type { SimulatedWorker } from './worker.js';

export interface WorldOptions {
  readonly stage: Stage;
  readonly seed: number;
  readonly makeReady: (options: { readonly clock: Clock }) => WatchedReadyQueue;
  /** Every line of the trace as it comes; null: they are only kept. */
  readonly print: ((line: string) => void) | null;
}

export interface Ask<Answer> {
  readonly what: string;
  readonly server: Server;
  readonly use: (engine: Engine) => Promise<Answer>;
  readonly heard?: (answer: Answer) => void;
  readonly refused?: (code: ErrorCode | 'down') => void;
}

/** What a client may be told when others were quicker, or when something is away. */
const expectedRefusals: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'unavailable',
  'lease_lost',
  'worker_unknown',
  'task_ended',
  'task_started',
  'task_not_ended',
  'task_completed',
]);

const sliceMs = 250;

/** Servers, workers and callers on one database, and what is known of them. */
export class World {
  readonly stage: Stage;
  readonly trace: Trace;
  readonly ledger = new Ledger();
  readonly tasks: TaskBook;
  readonly rules: RuleBook;
  readonly servers: Server[] = [];
  readonly workers: SimulatedWorker[] = [];
  slownessMs = 0;
  readonly #options: WorldOptions;
  readonly #engineRandom: Random;
  #launched = 0;
  #afterwards: (() => void)[] = [];
  #failure: Error | null = null;

  constructor(options: WorldOptions) {
    const { stage, seed, print } = options;
    this.#options = options;
    this.stage = stage;
    this.#engineRandom = new Random(seed, 1_000_000);
    this.trace = new Trace(stage.time, print);
    const nowMs = () => stage.time.nowMs;
    const { leaseMs } = simulatedSettings;
    this.tasks = new TaskBook({ ledger: this.ledger, trace: this.trace, leaseMs, nowMs });
    this.rules = new RuleBook(this.ledger, (lease) => this.tasks.isLive(lease));
  }

  get nowMs(): number {
    return this.stage.time.nowMs;
  }

  get openServers(): readonly Server[] {
    return this.servers.filter((server) => server.isOpen);
  }

  get serving(): Server | null {
    return this.servers.find((server) => server.isServing) ?? null;
  }

  launch(): Server {
    this.#launched += 1;
    const server = new Server({
      name: `server-${this.#launched}`,
      stage: this.stage,
      random: this.#engineRandom,
      slownessMs: () => this.slownessMs,
      makeReady: this.#options.makeReady,
      onComplaint: (sentence) => {
        this.fail(new Violation('no unexpected errors', sentence));
      },
      onCrash: (down) => {
        this.trace.note(`  ${down.name} is down`);
        this.servers.splice(this.servers.indexOf(down), 1);
      },
    });
    this.servers.push(server);
    this.trace.note(`  ${server.name} starts`);
    server.begin().then(
      () => this.trace.note(`  ${server.name} is up`),
      (error: unknown) => {
        this.#judgeRefusal(`${server.name} starts`, error);
        server.crash();
      },
    );
    return server;
  }

  ask<Answer>({ what, server, use, heard, refused }: Ask<Answer>): void {
    this.trace.note(`  ${what}, asked of ${server.name}`);
    server
      .call(use)
      .then(
        (answer) => {
          heard?.(answer);
        },
        (error: unknown) => {
          refused?.(this.#judgeRefusal(what, error));
        },
      )
      .catch((error: unknown) => {
        this.fail(error);
      });
  }

  /** Checked as soon as what was written is read. It must stay true once it is. */
  afterwards(check: () => void): void {
    this.#afterwards.push(check);
  }

  fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
  }

  /** Workers that are well send their heartbeats meanwhile. */
  async pass(ms: number): Promise<void> {
    for (let leftMs = ms; leftMs > 0; leftMs -= sliceMs) {
      for (const worker of this.workers) beatIfDue(this, worker);
      await this.stage.time.pass(Math.min(leftMs, sliceMs));
    }
    await this.check();
  }

  async freeze(ms: number): Promise<void> {
    await this.stage.time.jump(ms);
    await this.check();
  }

  async check(): Promise<void> {
    await this.stage.time.pass(0);
    this.tasks.read(await takeWritten(this.stage.db.urgent));
    const checks = this.#afterwards;
    this.#afterwards = [];
    for (const check of checks) check();
    if (this.#failure !== null) throw this.#failure;
  }

  #judgeRefusal(what: string, error: unknown): ErrorCode | 'down' {
    const code = codeOf(error);
    this.trace.note(`  ${what}: ${code ?? 'an error'}`);
    if (code === 'down') return code;
    if (code === null || !expectedRefusals.has(code)) {
      const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.fail(new Violation('no unexpected errors', `${what}: ${detail}`));
    }
    return code ?? 'internal';
  }
}

function codeOf(error: unknown): ErrorCode | 'down' | null {
  if (error instanceof ServerDownError) return 'down';
  if (error instanceof SluiceError) return error.code;
  // A server that can't begin, since Postgres is away.
  return error instanceof Error && error.name === 'DatabaseAwayError' ? 'unavailable' : null;
}
