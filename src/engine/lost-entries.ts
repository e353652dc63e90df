import type { TaskId } from '../domain/ids.js';
import { isBefore } from '../ready/left-line.js';
import type { Position } from '../ready/ready-queue.js';
import type { ReadyRow } from '../store/task-row.js';
import { endOf, findQueued, walkQueued, type QueuedCursor } from '../store/walk-line.js';
import { instant, type EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import type { Counters } from './counters.js';
import { WindowMap } from './windows.js';

/** A thousand a second, in pieces that nobody notices: all at once they held up every p99. */
const walkedAtOnce = 100;
const piecesPerSweep = 10;
/** It is woken when there is something to do. */
const idleMs = 60_000;

/**
 * Walks over the head of every line, as far as it was offered, lap after lap: what the ready queue
 * lost is offered again.
 */
export class LostEntries {
  readonly #context: EngineContext;
  readonly #feeder: Feeder;
  readonly #counters: Counters;
  #cursor: QueuedCursor | null = null;
  #mustWalk = false;
  #wake: () => void = () => undefined;

  constructor(context: EngineContext, feeder: Feeder, counters: Counters) {
    this.#context = context;
    this.#feeder = feeder;
    this.#counters = counters;
  }

  begin(wake: () => void): void {
    this.#wake = wake;
  }

  /** Every sweep that finds something in line says so. One lap at a time. */
  beginLap(): void {
    this.#mustWalk = true;
    if (this.#cursor === null) this.#wake();
  }

  /** A short lap is one look a sweep; with nothing in line there is none. */
  async tick(): Promise<number> {
    const { sweepIntervalMs } = this.#context.settings;
    if (!this.#mustWalk && this.#cursor === null) return idleMs;
    this.#mustWalk = false;
    await this.#walk();
    return this.#cursor === null ? idleMs : sweepIntervalMs / piecesPerSweep;
  }

  /** Those of them that are queued and that the ready queue does not hold. */
  async offerAgain(taskIds: readonly TaskId[]): Promise<void> {
    const { ready } = this.#context;
    const lost = await this.#findLost(taskIds);
    if (lost.length === 0) return;
    const answer = await ready.offer(lost);
    if (answer.kind === 'rebuild') return;
    const accepted = answer.outcomes.filter((outcome) => outcome === 'accepted').length;
    this.#counters.add('reoffered', accepted);
    this.#feeder.noteLeft(lost.filter((_, index) => answer.outcomes[index] === 'left'));
  }

  async #walk(): Promise<void> {
    const { db } = this.#context;
    const { rows, next } = await walkQueued(db, this.#cursor, walkedAtOnce, instant(this.#context));
    const { offered, isPast } = await this.#withoutLeft(rows);
    this.#cursor = isPast && next !== null ? endOf(next.window) : next;
    await this.offerAgain(offered.map(({ taskId }) => taskId));
  }

  /**
   * Without those that were left in line, which the feeder reads. `isPast`: so is the last of these,
   * and with it the rest of its window.
   */
  async #withoutLeft(rows: readonly ReadyRow[]) {
    const windows = new WindowMap<Position | null>();
    for (const row of rows) windows.set(row, null);
    const looks = await this.#context.ready.look(windows.windows());
    windows.windows().forEach((window, index) => {
      windows.set(window, looks[index]?.left?.from ?? null);
    });
    const wasOffered = (row: ReadyRow) => {
      const from = windows.get(row) ?? null;
      return from === null || isBefore(row, from);
    };
    const last = rows.at(-1);
    return {
      offered: rows.filter(wasOffered),
      isPast: last !== undefined && !wasOffered(last),
    };
  }

  /**
   * Queued, and not held. What was taken and completed since it was read looks the same at first:
   * offered again, it would take up a place for nothing. And what was given another priority since
   * is offered as it is now.
   */
  async #findLost(taskIds: readonly TaskId[]): Promise<readonly ReadyRow[]> {
    const { db, ready } = this.#context;
    const missing = taskIds.length === 0 ? [] : await ready.missing(taskIds);
    if (missing.length === 0) return [];
    const queued = await findQueued(db, missing, instant(this.#context));
    const lost = new Set(await ready.missing(queued.map(({ taskId }) => taskId)));
    return queued.filter(({ taskId }) => lost.has(taskId));
  }
}
