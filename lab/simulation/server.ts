import { pino } from 'pino';

import type { EngineContext } from '../../src/engine/context.js';
import { Engine } from '../../src/engine/engine.js';
import { TaskEvents } from '../../src/engine/events.js';
import { defaultEngineSettings, type EngineSettings } from '../../src/engine/settings.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import type { TakeAnswer, TakeRequest } from '../../src/ready/ready-queue.js';
import { AnswerBudget } from '../../src/engine/answer-budget.js';
import { LocalBus } from '../../src/runtime/bus.js';
import { systemClock, type Clock } from '../../src/runtime/clock.js';
import type { Logger } from '../../src/runtime/log.js';
import { FaultyDatabase } from './faulty-database.js';
import type { Random } from './random.js';
import type { Stage } from './stage.js';

/** Short, so that little time has to pass until something lapses. */
export const simulatedSettings: EngineSettings = {
  ...defaultEngineSettings,
  heartbeatIntervalMs: 1_000,
  leaseMs: 3_000,
  unstartedMs: 3_000,
  timeoutGraceMs: 1_000,
  sweepIntervalMs: 1_000,
  discoverIntervalMs: 1_000,
  servingLeaseMs: 3_000,
  servingRenewMs: 1_000,
  benchMs: 10_000,
};

/** Remembers when each task was last granted. */
export class WatchedReadyQueue extends MemoryReadyQueue {
  readonly takenMs = new Map<string, number>();
  readonly #clock: Clock;

  constructor(options: { readonly clock: Clock }) {
    super(options);
    this.#clock = options.clock;
  }

  override async take(request: TakeRequest): Promise<TakeAnswer> {
    const answer = await super.take(request);
    if (answer.kind === 'taken') {
      for (const { taskId } of answer.entries) this.takenMs.set(taskId, this.#clock.nowMs());
    }
    return answer;
  }
}

/** The server went down before it answered: what was asked may or may not have been done. */
export class ServerDownError extends Error {
  override readonly name = 'ServerDownError';
}

export interface ServerOptions {
  readonly name: string;
  readonly stage: Stage;
  readonly random: Random;
  /** Statements take up to this long, there and back. */
  readonly slownessMs: () => number;
  readonly makeReady: (options: { readonly clock: Clock }) => WatchedReadyQueue;
  /** Called for what a server should never have to say. */
  readonly onComplaint: (sentence: string) => void;
  readonly onCrash: (server: Server) => void;
}

/** One server process: a real engine that can be lost without a word. */
export class Server {
  readonly name: string;
  readonly db: FaultyDatabase;
  readonly ready: WatchedReadyQueue;
  readonly #stage: Stage;
  readonly #engine: Engine;
  readonly #onCrash: (server: Server) => void;
  readonly #unanswered = new Set<(error: Error) => void>();
  #state: 'opening' | 'open' | 'down' = 'opening';

  constructor(options: ServerOptions) {
    const { name, stage, random, slownessMs, makeReady } = options;
    this.name = name;
    this.#stage = stage;
    this.#onCrash = options.onCrash;
    this.ready = makeReady({ clock: systemClock });
    this.db = new FaultyDatabase({
      inner: stage.db,
      time: stage.time,
      delayMs: () => (slownessMs() === 0 ? 0 : Math.floor(random.next() * (slownessMs() + 1))),
      onCrash: () => {
        this.crash();
      },
    });
    const log = complaining(options.onComplaint);
    const context = contextOf(this.db, this.ready, random, log);
    this.#engine = stage.time.owned(this, () => new Engine(context, 'serve'));
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  get isDown(): boolean {
    return this.#state === 'down';
  }

  get isServing(): boolean {
    return this.isOpen && this.#engine.notServing() === null;
  }

  async begin(): Promise<void> {
    await this.call((engine) => engine.begin());
    if (!this.isDown) this.#state = 'open';
  }

  /** What a client does: it hears the answer, or that the server went down. */
  call<Answer>(use: (engine: Engine) => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.isDown) {
        reject(new ServerDownError(this.name));
        return;
      }
      this.#unanswered.add(reject);
      const answer = this.#stage.time.owned(this, () => use(this.#engine));
      answer.then(resolve, reject).finally(() => this.#unanswered.delete(reject));
    });
  }

  /** As by SIGKILL: no statement, no timer, no word any more. */
  crash(): void {
    if (this.isDown) return;
    this.#state = 'down';
    this.db.die();
    this.#stage.time.drop(this);
    for (const reject of this.#unanswered) reject(new ServerDownError(this.name));
    this.#unanswered.clear();
    this.#onCrash(this);
  }

  /** As by SIGTERM. */
  async close(): Promise<void> {
    await this.call((engine) => engine.close());
    this.crash();
  }
}

function contextOf(
  db: FaultyDatabase,
  ready: WatchedReadyQueue,
  random: Random,
  log: Logger,
): EngineContext {
  return {
    db,
    ready,
    bus: new LocalBus(),
    closeLinks: () => ready.close(),
    mode: 'memory',
    answers: new AnswerBudget(),
    events: new TaskEvents((error) => {
      log.error({ err: error }, 'a listener of task events threw');
    }),
    settings: simulatedSettings,
    log,
    random: () => random.next(),
    // The database's own clock, as in production: it is the virtual one.
    clock: null,
  };
}

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly err?: { readonly type: string; readonly message: string; readonly stack?: string };
}

const errorLevel = 50;
const takenOver = 'another process took over while this one was away';

/** An error that no outage explains is a bug. */
function complaining(onComplaint: (sentence: string) => void): Logger {
  const write = (text: string): void => {
    const { level, msg, err } = JSON.parse(text) as LogLine;
    if (level < errorLevel || msg === takenOver || err?.type === 'DatabaseAwayError') return;
    onComplaint(err === undefined ? msg : `${msg}: ${err.stack ?? err.message}`);
  };
  return pino({ level: 'error', base: null, timestamp: false }, { write });
}
