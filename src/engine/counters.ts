import { randomUUID } from 'node:crypto';
import { attemptErrorCodes } from '../domain/attempt-error.js';
import {
  counterLength,
  counterPositions,
  countOf,
  runPosition,
  sumOf,
  waitPosition,
  type CounterName,
  type Counts,
} from '../domain/counters.js';
import type { TaskEvent } from '../protocol/events.js';
import {
  addCounts,
  allQueuesName,
  findCounts,
  findRecentCounts,
  shortestStepMs,
  type CountedSlot,
  type CountedSpan,
  type RecentSums,
} from '../store/counters.js';
import { approximateNow, instant, type EngineContext } from './context.js';

export interface RecentTotals {
  readonly started: number;
  readonly completed: number;
  readonly failed: number;
}

type Span = Parameters<typeof findCounts>[2];

export interface LastHour {
  readonly lapsed: number;
  readonly timedOut: number;
  readonly reoffered: number;
}

/** Queues that are counted one by one in a slot. Further ones count in the sum over all queues only. */
const defaultMaxQueues = 10_000;
/** While Postgres does not take them. What happens after that counts for the latest of them. */
const maxSlotsKept = 6;
/** At the end of a process: a failed write that is sent again, what came after it, and tries that fail. */
const lastWrites = 5;
/** Each is five seconds apart: no read takes as long. */
const writesKept = 4;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/**
 * What happens in this process, gathered in slots of five seconds. Each slot is added to the counts of all servers
 * when it is over. What is read is the sum of all servers, as of the last tick, and of what this process has not
 * written yet.
 */
export class Counters {
  readonly #context: EngineContext;
  readonly #maxQueues: number;
  readonly #id = randomUUID();
  #sequence = 0;
  /** Not written yet, by their begin. */
  readonly #slots = new Map<number, Slot>();
  #latest: Slot | null = null;
  /** What is being written, or was and has to be written again with the same sequence. */
  #writing: readonly Slot[] = [];
  /** The last writes: a read that began before one of them has not seen it. */
  #written: readonly { readonly sequence: number; readonly slots: readonly Slot[] }[] = [];
  /** Written after the stored counts were read last. */
  #unread: readonly Slot[] = [];
  #stored: ReadonlyMap<string, RecentSums> = new Map();
  /** Of the slots that are over, in all queues together. */
  readonly #past = new Float64Array(counterLength);

  constructor(context: EngineContext, maxQueues = defaultMaxQueues) {
    this.#context = context;
    this.#maxQueues = maxQueues;
  }

  note(event: TaskEvent): void {
    const slot = this.#slotAt(event.at.getTime());
    countEvent(slot.total, event);
    const counts = slot.countsOf(event.queue);
    if (counts !== null) countEvent(counts, event);
  }

  add(name: CounterName, amount: number, queue?: string): void {
    const slot = this.#slotAt(approximateNow(this.#context).getTime());
    increase(slot.total, name, amount);
    const counts = queue === undefined ? null : slot.countsOf(queue);
    if (counts !== null) increase(counts, name, amount);
  }

  /** Over all servers, to the nearest five seconds. Absent queue: over all queues. */
  lastMinute(nowMs: number, queue?: string): RecentTotals {
    const { started, completed, failed } = this.#recent(nowMs, queue);
    return { started, completed, failed };
  }

  /** Of the tasks that completed in the last minute; null when none did. */
  averageDurationSeconds(nowMs: number, queue?: string): number | null {
    const { completed, runMs } = this.#recent(nowMs, queue);
    return completed === 0 ? null : runMs / completed / 1000;
  }

  /** What this process counted since it began, in all queues together. */
  processTotals(): Counts {
    const sums = this.#past.slice();
    for (const { total } of this.#slots.values()) addTo(sums, total);
    return sums;
  }

  async lastHour(nowMs: number): Promise<LastHour> {
    const span = { fromMs: nowMs - hourMs, toMs: nowMs + minuteMs, stepSeconds: hourMs / 1000 };
    const pieces = await this.findCounts(allQueuesName, span);
    const sum = (name: CounterName) =>
      pieces.reduce((total, { counts }) => total + countOf(counts, name), 0);
    return { lapsed: sum('lapsed'), timedOut: sum('timed_out'), reoffered: sum('reoffered') };
  }

  /** Over all servers, with what this process has not written yet; pieces without any counts are left out. */
  async findCounts(queue: string, span: Span): Promise<CountedSpan[]> {
    const found = await findCounts(this.#context.db.reads, queue, span, this.#id);
    const byPiece = new Map(found.pieces.map(({ atMs, counts }) => [atMs, counts]));
    const stepMs = span.stepSeconds * 1000;
    for (const slot of this.#notAmong(found.sequence)) {
      const counts = slot.find(queue);
      if (counts === undefined || slot.atMs < span.fromMs || slot.atMs >= span.toMs) continue;
      const atMs = slot.atMs - (slot.atMs % stepMs);
      byPiece.set(atMs, sumOf(byPiece.get(atMs) ?? [], counts));
    }
    return [...byPiece]
      .toSorted(([a], [b]) => a - b)
      .map(([atMs, counts]) => ({ atMs, counts: Array.from(counts) }));
  }

  /** Writes the slots that are over, and reads what all servers counted. */
  async tick(): Promise<number> {
    const nowMs = approximateNow(this.#context).getTime();
    await this.#write(nowMs);
    this.#stored = await findRecentCounts(this.#context.db, windowStartMs(nowMs));
    this.#unread = [];
    return shortestStepMs - (nowMs % shortestStepMs);
  }

  /** Everything that was counted until now: this process ends. Rejects when Postgres does not take it. */
  async writeAll(): Promise<void> {
    for (let writes = 1; this.#slots.size > 0 || this.#writing.length > 0; writes += 1) {
      try {
        await this.#write(Infinity);
      } catch (error) {
        if (writes >= lastWrites) throw error;
      }
    }
  }

  /** A write that failed is sent again as it was: it may have been written nevertheless. */
  async #write(nowMs: number): Promise<void> {
    if (this.#writing.length === 0) {
      this.#writing = this.#takeSlots(nowMs);
      if (this.#writing.length === 0) return;
      this.#sequence += 1;
    }
    const process = { id: this.#id, sequence: this.#sequence };
    const slots = this.#writing.flatMap((slot) => slot.counted());
    await addCounts(this.#context.db, process, slots, instant(this.#context));
    this.#unread = [...this.#unread, ...this.#writing];
    this.#written = [...this.#written, { sequence: this.#sequence, slots: this.#writing }].slice(
      -writesKept,
    );
    this.#writing = [];
  }

  #takeSlots(nowMs: number): Slot[] {
    const over = [...this.#slots.values()].filter(({ atMs }) => atMs + shortestStepMs <= nowMs);
    for (const slot of over) {
      this.#slots.delete(slot.atMs);
      addTo(this.#past, slot.total);
      if (slot === this.#latest) this.#latest = null;
    }
    return over;
  }

  #slotAt(nowMs: number): Slot {
    const atMs = nowMs - (nowMs % shortestStepMs);
    if (this.#latest?.atMs === atMs) return this.#latest;
    const known = this.#slots.get(atMs);
    if (known !== undefined) return (this.#latest = known);
    if (this.#latest !== null && this.#slots.size >= maxSlotsKept) return this.#latest;
    const slot = new Slot(atMs, this.#maxQueues);
    this.#slots.set(atMs, slot);
    return (this.#latest = slot);
  }

  #recent(nowMs: number, queue = allQueuesName): RecentSums {
    const sums = { ...(this.#stored.get(queue) ?? nothing) };
    const sinceMs = windowStartMs(nowMs);
    for (const slot of [...this.#unread, ...this.#writing, ...this.#slots.values()]) {
      const counts = slot.atMs < sinceMs ? undefined : slot.find(queue);
      if (counts === undefined) continue;
      sums.started += countOf(counts, 'started');
      sums.completed += countOf(counts, 'completed');
      sums.failed += countOf(counts, 'failed');
      sums.runMs += countOf(counts, 'run_ms');
    }
    return sums;
  }

  /** What a read that saw the writes up to this one did not see. */
  #notAmong(sequence: number): Slot[] {
    const written = this.#written.filter((write) => write.sequence > sequence);
    const writing = this.#sequence > sequence ? this.#writing : [];
    return [...written.flatMap(({ slots }) => slots), ...writing, ...this.#slots.values()];
  }
}

const nothing: RecentSums = { started: 0, completed: 0, failed: 0, runMs: 0 };

/** The last minute, in whole slots: the present one and eleven before. */
function windowStartMs(nowMs: number): number {
  return nowMs - (nowMs % shortestStepMs) - minuteMs + shortestStepMs;
}

/** What happened in five seconds. */
class Slot {
  readonly atMs: number;
  readonly total = new Float64Array(counterLength);
  readonly #maxQueues: number;
  readonly #byQueue = new Map<string, Float64Array>();

  constructor(atMs: number, maxQueues: number) {
    this.atMs = atMs;
    this.#maxQueues = maxQueues;
  }

  /** Null: there are too many queues to count this one by itself. */
  countsOf(queue: string): Float64Array | null {
    const known = this.#byQueue.get(queue);
    if (known !== undefined) return known;
    if (this.#byQueue.size >= this.#maxQueues) return null;
    const counts = new Float64Array(counterLength);
    this.#byQueue.set(queue, counts);
    return counts;
  }

  find(queue: string): Float64Array | undefined {
    return queue === allQueuesName ? this.total : this.#byQueue.get(queue);
  }

  counted(): CountedSlot[] {
    const { atMs, total } = this;
    const byQueue = [...this.#byQueue].map(([queue, counts]) => ({ queue, atMs, counts }));
    return [{ queue: allQueuesName, atMs, counts: total }, ...byQueue];
  }
}

function countEvent(counts: Float64Array, event: TaskEvent): void {
  const { from, to, outcome, tokens } = event;
  if (from === 'new') increase(counts, 'submitted', 1);
  if (from === 'queued' && (to === 'assigned' || to === 'executing')) countStart(counts, event);
  else if (tokens !== undefined) increase(counts, 'tokens_used', tokens);
  if (to === 'completed') countCompletion(counts, event);
  if (to === 'dead_letter' || to === 'cancelled') increase(counts, to, 1);
  if (to === 'failed') increase(counts, 'expired', 1);
  if (outcome !== undefined && outcome !== 'succeeded') countUnsuccessful(counts, event);
  else if (to === 'failed') increase(counts, 'failed', 1);
}

function countStart(counts: Float64Array, { priority, waitMs, tokens = 0 }: TaskEvent): void {
  increase(counts, 'started', 1);
  increase(counts, 'tokens_reserved', tokens);
  if (waitMs === undefined) return;
  increase(counts, 'wait_ms', waitMs);
  increaseAt(counts, waitPosition(priority, waitMs), 1);
}

function countCompletion(counts: Float64Array, { durationMs }: TaskEvent): void {
  increase(counts, 'completed', 1);
  if (durationMs === undefined) return;
  increase(counts, 'run_ms', durationMs);
  increaseAt(counts, runPosition(durationMs), 1);
}

function countUnsuccessful(counts: Float64Array, { to, outcome, errorCode }: TaskEvent): void {
  if (outcome === 'failed' || outcome === 'timed_out' || outcome === 'lapsed') {
    increase(counts, 'failed', 1);
    if (to === 'pending') increase(counts, 'retried', 1);
  }
  if (outcome === 'timed_out' || outcome === 'lapsed') increase(counts, outcome, 1);
  if (outcome === 'deferred' || outcome === 'released') increase(counts, outcome, 1);
  if (errorCode === attemptErrorCodes.rateLimited) increase(counts, 'rate_limited', 1);
  if (errorCode === attemptErrorCodes.neverStarted) increase(counts, 'never_started', 1);
}

function increase(counts: Float64Array, name: CounterName, amount: number): void {
  increaseAt(counts, counterPositions[name], amount);
}

function addTo(sums: Float64Array, counts: Float64Array): void {
  for (const [position, count] of counts.entries()) increaseAt(sums, position, count);
}

function increaseAt(counts: Float64Array, position: number, amount: number): void {
  counts[position] = (counts[position] ?? 0) + amount;
}
