import type { AttemptError } from '../domain/attempt-error.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { Became } from '../domain/pushback.js';
import { storableText } from '../domain/storable-text.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type { Pushback } from '../protocol/pushbacks-api.js';
import {
  insertPushbacks,
  listPushbacks,
  purgePushbacks,
  trimPushbacks,
} from '../store/pushbacks.js';
import { instant, judgeDatabaseFailure, type EngineContext } from './context.js';

export interface NotedPushback extends Became {
  readonly queue: string;
  readonly taskId: TaskId;
  readonly taskType: string;
  readonly workerId: WorkerId;
  readonly error: AttemptError;
  readonly atMs: number;
}

const flushMs = 1_000;
/** In one flush; of further ones nothing is kept. */
const maxQueues = 1_000;
const maxMessageLength = 500;
const keptOfQueue = 1_000;
const keptMs = 7 * 24 * 3_600_000;
/** About 100 MB. */
const maxRows = 200_000;
const upkeepMs = 60_000;
/** Each costs a thousand steps in an index. */
const trimmedAtOnce = 100;
const purgedAtOnce = 5_000;

/**
 * What services answered that want no calls for now, for people to read: one row for each queue and second. It is
 * written beside the reports: these neither wait for it nor fail with it.
 */
export class PushbackLedger {
  readonly #context: EngineContext;
  #noted = new Map<string, Pushback>();
  /** Was not written yet, or must be written again. */
  #writing: readonly Pushback[] = [];
  /** Queues that have got rows since their old ones were deleted. */
  readonly #grown = new Set<string>();
  #nextUpkeepMs = performance.now() + upkeepMs;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** In memory. Of the answers of a second the first is kept, or the first that stopped the queue. */
  note(noted: NotedPushback): void {
    const { queue, became } = noted;
    const known = this.#noted.get(queue);
    if (known === undefined) {
      if (this.#noted.size < maxQueues) this.#noted.set(queue, toPushback(noted, 1));
      return;
    }
    const answers = known.answers + 1;
    const isNews = became === 'stopped' && known.became !== 'stopped';
    this.#noted.set(queue, isNews ? toPushback(noted, answers) : { ...known, answers });
  }

  async list(queue: string, page: PageRequest): Promise<Page<Pushback>> {
    return listPushbacks(this.#context.db.reads, queue, page);
  }

  async tick(): Promise<number> {
    await this.flush();
    if (performance.now() >= this.#nextUpkeepMs) await this.#upkeep();
    return flushMs;
  }

  /** A write that failed is sent again: it may have been done nevertheless, and then nothing is added. */
  async flush(): Promise<void> {
    if (this.#writing.length === 0) {
      if (this.#noted.size === 0) return;
      this.#writing = [...this.#noted.values()];
      this.#noted = new Map();
    }
    try {
      await insertPushbacks(this.#context.db, this.#writing);
    } catch (error) {
      // What Postgres refuses once it would refuse for ever.
      if (judgeDatabaseFailure(error) === 'culprit') this.#writing = [];
      throw error;
    }
    for (const { queue } of this.#writing) this.#grown.add(queue);
    this.#writing = [];
  }

  async #upkeep(): Promise<void> {
    this.#nextUpkeepMs = performance.now() + upkeepMs;
    const { db } = this.#context;
    const queues = [...this.#grown].slice(0, trimmedAtOnce);
    if (queues.length > 0) await trimPushbacks(db, queues, keptOfQueue);
    for (const queue of queues) this.#grown.delete(queue);
    const bounds = { keptMs, maxRows, limit: purgedAtOnce };
    await purgePushbacks(db, bounds, instant(this.#context));
  }
}

function toPushback(noted: NotedPushback, answers: number): Pushback {
  const { queue, taskId, taskType, workerId, error, atMs, became, untilMs } = noted;
  const { code, message, retryAfterSeconds } = error;
  return {
    at: new Date(Math.round(atMs)),
    queue,
    taskId,
    taskType,
    workerId,
    code,
    message: storableText(message, maxMessageLength),
    retryAfterMs: retryAfterSeconds === undefined ? null : Math.round(retryAfterSeconds * 1000),
    answers,
    became,
    until: untilMs === null ? null : new Date(untilMs),
  };
}
