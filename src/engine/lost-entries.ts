import type { TaskId } from '../domain/ids.js';
import { LockedError } from '../store/database.js';
import type { ReadyRow } from '../store/task-row.js';
import { findQueued, walkQueued, type QueuedCursor } from '../store/walk-line.js';
import { instant, type EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import type { Throughput } from './throughput.js';

/** A thousand a second, in pieces that nobody notices: all at once they held up every p99. */
const walkedAtOnce = 100;
const piecesPerSweep = 10;
/** It is woken when there is something to do. */
const idleMs = 60_000;

/** Walks over everything queued, lap after lap: what the ready queue lost is offered again. */
export class LostEntries {
  readonly #context: EngineContext;
  readonly #feeder: Feeder;
  readonly #throughput: Throughput;
  #cursor: QueuedCursor | null = null;
  #mustWalk = false;
  #wake: () => void = () => undefined;

  constructor(context: EngineContext, feeder: Feeder, throughput: Throughput) {
    this.#context = context;
    this.#feeder = feeder;
    this.#throughput = throughput;
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

  async #walk(): Promise<void> {
    const { db, ready } = this.#context;
    const { rows, next } = await walkQueued(db, this.#cursor, walkedAtOnce, instant(this.#context));
    this.#cursor = next;
    const lost = await this.#findLost(rows.map(({ taskId }) => taskId));
    if (lost.length === 0) return;
    const answer = await ready.offer(lost);
    if (answer.kind === 'rebuild') return;
    const accepted = answer.outcomes.filter((outcome) => outcome === 'accepted').length;
    this.#throughput.reoffered.add(db.nowMs(), accepted);
    await this.#giveBack(lost.filter((_, index) => answer.outcomes[index] === 'full'));
  }

  /**
   * Queued, and not held. What was taken and completed since it was read looks the same at first:
   * offered again, it would hold a place that the feeder has promised to another. And what was given
   * another priority since is offered as it is now.
   */
  async #findLost(taskIds: readonly TaskId[]): Promise<readonly ReadyRow[]> {
    const { db, ready } = this.#context;
    const missing = taskIds.length === 0 ? [] : await ready.missing(taskIds);
    if (missing.length === 0) return [];
    const queued = await findQueued(db, missing, instant(this.#context));
    const lost = new Set(await ready.missing(queued.map(({ taskId }) => taskId)));
    return queued.filter(({ taskId }) => lost.has(taskId));
  }

  /** A row that somebody holds is met again in the next lap. */
  async #giveBack(full: Parameters<Feeder['giveBack']>[0]): Promise<void> {
    try {
      await this.#feeder.giveBack(full);
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      this.#context.log.debug({ err: error }, 'a row is locked; the next lap tries again');
    }
  }
}
