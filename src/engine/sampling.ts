import { randomUUID } from 'node:crypto';
import { priorities } from '../domain/priority.js';
import { SlowReadError } from '../store/database.js';
import { findLanes } from '../store/find-lanes.js';
import { leaveTurn, takeTurn } from '../store/turns.js';
import { turnGiver } from '../runtime/turns.js';
import type { ActiveWorkers } from './active-workers.js';
import { approximateNow, instant, type EngineContext } from './context.js';
import type { Counters } from './counters.js';
import type { Line, LineSnapshot, QueueLine } from './line.js';
import type { QueueDirectory } from './queue-directory.js';
import { throttleReason } from './throttling.js';

export interface SamplingParts {
  readonly active: Pick<ActiveWorkers, 'get'>;
  readonly line: Pick<Line, 'snapshot'>;
  readonly queues: Pick<QueueDirectory, 'circuitOf'>;
  readonly counters: Pick<Counters, 'add'>;
}

/** Four samples to a minute: each minute of a chart has the same number of them. */
export const samplingMs = 15_000;
const leaseMs = 3 * samplingMs;
/** After a pause of this process the sample stands for so much at most: nobody knows what was in between. */
const longestSpanMs = 2 * samplingMs;
/** Queues that are counted by themselves: those with most in line. Others are in the sum over all queues. */
const maxQueues = 200;
const maxLanesOfQueue = 20;
/** What came in a moment ago is about to be taken. */
const waitingLongMs = 1_000;
const turnName = 'sampling';

interface WaitingQueue {
  readonly queue: string;
  readonly depth: number;
  readonly line: QueueLine;
  /** Undefined: in the sum over all queues alone. */
  readonly countedAs: string | undefined;
}

/**
 * Samples how much is in line and why nothing of it can be taken, into the counts over time. Every server sees all queues,
 * so one server samples at a time.
 */
export class Sampling {
  readonly #context: EngineContext;
  readonly #parts: SamplingParts;
  readonly #holder = randomUUID();
  /** Null: this server did not hold the turn before, and knows nothing of the time before its first sample. */
  #sampledAtMs: number | null = null;

  constructor(context: EngineContext, parts: SamplingParts) {
    this.#context = context;
    this.#parts = parts;
  }

  async tick(): Promise<number> {
    if (await this.#isOurTurn()) await this.#sampleUnlessSlow();
    else this.#sampledAtMs = null;
    return untilNextMs(this.#nowMs());
  }

  /** Another server may sample at once. */
  async leave(): Promise<void> {
    const holdsTurn = this.#sampledAtMs !== null && this.#context.mode === 'redis';
    this.#sampledAtMs = null;
    if (holdsTurn) await leaveTurn(this.#context.db, turnName, this.#holder);
  }

  /** Without Redis only the leader samples. */
  async #isOurTurn(): Promise<boolean> {
    const { db, mode } = this.#context;
    if (mode !== 'redis') return true;
    const turn = { name: turnName, holder: this.#holder, leaseMs };
    return takeTurn(db, turn, instant(this.#context));
  }

  /** Postgres takes too long to count now: the next sample stands for this one, too. */
  async #sampleUnlessSlow(): Promise<void> {
    try {
      await this.#sample();
    } catch (error) {
      if (!(error instanceof SlowReadError)) throw error;
    }
  }

  async #sample(): Promise<void> {
    const snapshot = await this.#parts.line.snapshot();
    const waiting = deepestFirst(snapshot);
    const blocked = await this.#withoutWorker(waiting);
    const nowMs = this.#nowMs();
    const spanMs = Math.max(0, Math.min(nowMs - (this.#sampledAtMs ?? nowMs), longestSpanMs));
    this.#sampledAtMs = nowMs;
    if (spanMs === 0) return;
    for (const { depth, line, queue, countedAs } of waiting) {
      this.#add('depth_ms', depth * spanMs, countedAs);
      if (line.heldBackBy === null) continue;
      const reason = throttleReason(line.heldBackBy, this.#parts.queues.circuitOf(queue));
      this.#add(`held_${reason}_ms`, spanMs, countedAs);
    }
    for (const queue of blocked) this.#add('no_worker_ms', spanMs, queue);
  }

  /** While the ready queue is away nobody is handed anything: that says nothing about workers. */
  async #withoutWorker(waiting: readonly WaitingQueue[]): Promise<string[]> {
    const names = waiting
      .filter(({ countedAs, line }) => countedAs !== undefined && isLeftWaiting(line))
      .map(({ queue }) => queue);
    if (names.length === 0 || this.#context.ready.trouble() !== null) return [];
    const { reads } = this.#context.db;
    const lanes = await findLanes(reads, names, maxLanesOfQueue);
    const workforce = await this.#parts.active.get();
    // One that was not looked at may be able to.
    if (workforce.unseen.free > 0) return [];
    const isTaken = new Map<string, boolean>();
    const giveTurn = turnGiver();
    for (const lane of lanes) {
      const canBe = workforce.isAnyAbleTo(lane, ({ free }) => free > 0);
      isTaken.set(lane.queue, canBe || isTaken.get(lane.queue) === true);
      await giveTurn();
    }
    return names.filter((name) => isTaken.get(name) === false);
  }

  #add(name: Parameters<Counters['add']>[0], amount: number, queue: string | undefined): void {
    this.#parts.counters.add(name, amount, queue);
  }

  #nowMs(): number {
    return approximateNow(this.#context).getTime();
  }
}

/** In the middle between two multiples: a timer that is a little early or late stays in its minute. */
function untilNextMs(nowMs: number): number {
  return samplingMs - ((nowMs + samplingMs / 2) % samplingMs);
}

function deepestFirst({ queues }: LineSnapshot): WaitingQueue[] {
  return [...queues]
    .map(([queue, line]) => ({ queue, line, depth: depthOf(line) }))
    .filter(({ depth }) => depth > 0)
    .toSorted((a, b) => b.depth - a.depth)
    .map((one, place) => ({ ...one, countedAs: place < maxQueues ? one.queue : undefined }));
}

function depthOf({ depth }: QueueLine): number {
  return priorities.reduce((sum, one) => sum + depth[one], 0);
}

function isLeftWaiting({ heldBackBy, waiting }: QueueLine): boolean {
  if (heldBackBy !== null) return false;
  return priorities.some((one) => (waiting[one].oldestAgeMs ?? 0) >= waitingLongMs);
}
