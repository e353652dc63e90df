import type { TaskId } from '../domain/ids.js';
import type { TaskEvent } from '../protocol/events.js';
import { feedBacklog, lookForWork, wakeDue } from '../store/feed-backlog.js';
import type { ReadyRow } from '../store/task-row.js';
import { withFeedTurns } from '../store/feed-turn.js';
import { returnToBacklog } from '../store/return-to-backlog.js';
import { findBacklog } from '../store/walk-line.js';
import type { Window } from '../ready/ready-queue.js';
import { instant, tellAll, type EngineContext } from './context.js';
import { HeldOffers } from './held-offers.js';
import type { QueueDirectory } from './queue-directory.js';
import { WindowMap, type Places } from './windows.js';

const maxFedAtOnce = 2_000;
/** Of a window among many hungry ones; with as many places free, a window is worth feeding. */
const leastShare = 100;
const maxDueAtOnce = 2_000;
const maxWindowsAtOnce = 500;
const maxDiscoveredAtOnce = 1_000;
const lockedWaitMs = 100;
const closedWaitMs = 100;
const troubleWaitMs = 500;
/** Another server feeds it: so soon is it looked at again. */
const busyWaitMs = 10;
/** How often windows are looked at that others take from, unless there are very many of them. */
const lookIntervalMs = 50;
const windowsPerMs = 10;

/**
 * Moves backlog to the ready queue, oldest first, as room appears. It looks only at windows that
 * are hungry: their backlog is new, or they were taken from. A full window costs nothing.
 *
 * With a ready queue that servers share, each has its feeder, and they take turns at a window. A
 * server hears only of what its own workers take, so windows with backlog are looked at many times
 * a second. What found no room after all goes back to Postgres, where the oldest is fed first,
 * whoever feeds next.
 */
export class Feeder {
  readonly #context: EngineContext;
  readonly #isShared: boolean;
  readonly #queues: QueueDirectory;
  readonly #places: Places;
  /** Windows that have backlog, as far as is known, and how often that was said. */
  readonly #backlog = new WindowMap<number>();
  readonly #hungry = new WindowMap<true>();
  /** Fed, but the ready queue was away or closed: nothing is fed before these are offered. */
  #unoffered: readonly ReadyRow[] = [];
  readonly #held = new HeldOffers();
  #nextDiscoveryMs = 0;
  #nextDueMs = 0;
  #nextLookMs = Number.POSITIVE_INFINITY;
  /** Null while another process serves: its feeder finds what is noted here. */
  #wake: (() => void) | null = null;

  constructor(context: EngineContext, queues: QueueDirectory, places: Places) {
    this.#context = context;
    this.#isShared = context.mode === 'redis';
    this.#queues = queues;
    this.#places = places;
  }

  begin(wake: () => void): void {
    this.#wake = wake;
    wake();
  }

  end(): void {
    this.#wake = null;
    this.#backlog.clear();
    this.#hungry.clear();
    this.#unoffered = [];
    this.#held.clear();
  }

  hasBacklog(window: Window): boolean {
    return this.#backlog.has(window);
  }

  /** Work of this window stays in Postgres: new work queues up behind it. */
  noteBacklog(window: Window): void {
    if (this.#wake === null) return;
    this.#note(window);
    this.#wake();
  }

  /** Something falls due in `delayMs`, sooner than the next look may be. */
  noteDue(delayMs: number): void {
    const dueMs = performance.now() + delayMs;
    if (dueMs >= this.#nextDueMs) return;
    this.#nextDueMs = dueMs;
    this.#wake?.();
  }

  /** Backlog appeared somewhere, for example behind a workflow's head: look for it at once. */
  noteUnknownBacklog(): void {
    this.#nextDiscoveryMs = 0;
    this.#wake?.();
  }

  /** These were taken from: refill them before they run dry. */
  noteTaken(windows: readonly Window[]): void {
    if (this.#backlog.size === 0) return;
    for (const window of windows) if (this.#backlog.has(window)) this.#hungry.set(window, true);
    if (this.#hungry.size > 0) this.#wake?.();
  }

  /**
   * Queued in Postgres, but without a place: to be fed again, before anything younger. Left as they
   * are, they would wait until their window happens to have room when the sweeper comes by.
   */
  async giveBack(rows: readonly (Window & { readonly taskId: TaskId })[]): Promise<void> {
    if (rows.length === 0) return;
    await returnToBacklog(
      this.#context.db,
      rows.map(({ taskId }) => taskId),
    );
    if (this.#wake === null) return;
    for (const row of rows) this.#note(row);
    this.#wake();
  }

  async tick(): Promise<number> {
    if (this.#context.ready.trouble() !== null) return troubleWaitMs;
    await this.#place(this.#unoffered);
    if (performance.now() >= this.#nextDiscoveryMs) await this.#lookForWork();
    if (performance.now() >= this.#nextDueMs) await this.#wakeDue();
    if (performance.now() >= this.#nextLookMs) this.#lookAtAll();
    if (this.#unoffered.length === 0) await this.#place(this.#held.due());
    if (this.#unoffered.length === 0) await this.#feed();
    if (this.#unoffered.length > 0) return closedWaitMs;
    if (this.#hungry.size > 0) return 0;
    // What other servers' workers take, nobody tells.
    if (this.#isShared && this.#backlog.size > 0) {
      this.#lookIn(Math.max(lookIntervalMs, this.#backlog.size / windowsPerMs));
    }
    const nextMs = Math.min(this.#nextDueMs, this.#nextDiscoveryMs, this.#nextLookMs);
    return Math.max(0, Math.min(nextMs, this.#held.nextMs) - performance.now());
  }

  async #lookForWork(): Promise<void> {
    const { db, settings } = this.#context;
    this.#nextDiscoveryMs = performance.now() + settings.discoverIntervalMs;
    const { line, nextDueInMs } = await lookForWork(db, instant(this.#context));
    if (nextDueInMs !== null && nextDueInMs <= settings.discoverIntervalMs) {
      this.noteDue(nextDueInMs);
    }
    if (line) await this.#findBacklog();
  }

  /** Finds the windows that have backlog, whoever put it there: O(windows), not O(tasks). */
  async discover(): Promise<void> {
    this.#nextDiscoveryMs = performance.now() + this.#context.settings.discoverIntervalMs;
    await this.#findBacklog();
  }

  async #findBacklog(): Promise<void> {
    let after: Window | null = null;
    for (;;) {
      const { db } = this.#context;
      const windows: readonly Window[] = await findBacklog(db, maxDiscoveredAtOnce, after);
      for (const window of windows) this.#note(window);
      after = windows.at(-1) ?? null;
      if (windows.length < maxDiscoveredAtOnce) break;
    }
    await this.#queues.ensure(this.#backlog.windows().map(({ lane }) => lane.queue));
  }

  async #wakeDue(): Promise<void> {
    const { db, settings } = this.#context;
    const due = await wakeDue(db, maxDueAtOnce, instant(this.#context));
    for (const window of due.windows) this.#note(window);
    const { nextDueInMs } = due;
    // What is later than the next look is told by it.
    const isSoon = nextDueInMs !== null && nextDueInMs <= settings.discoverIntervalMs;
    const delayMs = isSoon ? nextDueInMs : Infinity;
    // What is due and yet was not woken is in somebody's hands: no use in asking again at once.
    this.#nextDueMs = performance.now() + Math.max(due.woken === 0 ? lockedWaitMs : 0, delayMs);
  }

  #note(window: Window): void {
    this.#backlog.set(window, (this.#backlog.get(window) ?? 0) + 1);
    this.#hungry.set(window, true);
  }

  #lookIn(delayMs: number): void {
    this.#nextLookMs = Math.min(this.#nextLookMs, performance.now() + delayMs);
  }

  #lookAtAll(): void {
    this.#nextLookMs = Number.POSITIVE_INFINITY;
    for (const window of this.#backlog.windows()) this.#hungry.set(window, true);
  }

  async #feed(): Promise<void> {
    const hungry = this.#nextHungry();
    if (hungry.size === 0) return;
    if (this.#isShared) await this.#feedInTurn(hungry);
    else await this.#feedNow(hungry);
  }

  async #feedInTurn(hungry: WindowMap<number>): Promise<void> {
    const room = await this.#context.ready.room(hungry.windows());
    // A turn costs Postgres something, a look does not.
    const roomy = hungry
      .windows()
      .filter((window, index) => (room[index] ?? 0) >= this.#worthFeeding(window));
    if (roomy.length === 0) return;
    await withFeedTurns(this.#context.db, roomy, async (areOurs) => {
      const ours = new WindowMap<number>();
      roomy.forEach((window, index) => {
        if (areOurs[index] === true) ours.set(window, hungry.get(window) ?? 0);
        else this.#lookIn(busyWaitMs);
      });
      await this.#feedNow(ours);
    });
  }

  async #feedNow(wanted: WindowMap<number>): Promise<void> {
    const reserved = await this.#places.reserve(wanted);
    try {
      await this.#feedInto(reserved);
    } finally {
      this.#places.giveBack(reserved);
    }
  }

  #nextHungry(): WindowMap<number> {
    const wanted = new WindowMap<number>();
    const share = Math.max(leastShare, Math.ceil(maxFedAtOnce / Math.max(1, this.#hungry.size)));
    for (const window of this.#hungry.windows()) {
      if (wanted.size === maxWindowsAtOnce) break;
      this.#hungry.delete(window);
      wanted.set(window, Math.min(share, this.#queues.settingsOf(window.lane.queue).maxReady));
    }
    return wanted;
  }

  async #feedInto(reserved: WindowMap<number>): Promise<void> {
    const wanted = [...reserved.entries()]
      .filter(([window, free]) => free >= this.#worthFeeding(window))
      .map(([{ lane, priority }, limit]) => ({ lane, priority, limit }));
    if (wanted.length === 0) return;
    const saidBefore = wanted.map((window) => this.#backlog.get(window));
    const rows = await feedBacklog(this.#context.db, wanted, instant(this.#context));
    this.#settle(wanted, saidBefore, rows);
    await this.#place(rows);
    tellAll(this.#context, rows, toFedEvent);
  }

  async #place(rows: readonly ReadyRow[]): Promise<void> {
    if (rows.length === 0) return;
    this.#unoffered = rows;
    const answer = await this.#context.ready.offer(rows);
    if (answer.kind === 'rebuild') return;
    this.#unoffered = [];
    this.#held.settle(rows, answer.outcomes);
    await this.giveBack(rows.filter((_, index) => answer.outcomes[index] === 'full'));
  }

  /** A window that gave less than asked is dry, unless somebody added to it in the meantime. */
  #settle(
    wanted: readonly (Window & { limit: number })[],
    saidBefore: readonly (number | undefined)[],
    rows: readonly ReadyRow[],
  ): void {
    const fed = new WindowMap<number>();
    for (const row of rows) fed.set(row, (fed.get(row) ?? 0) + 1);
    wanted.forEach((window, index) => {
      if ((fed.get(window) ?? 0) === window.limit) this.#hungry.set(window, true);
      else if (this.#backlog.get(window) === saidBefore[index]) this.#backlog.delete(window);
    });
  }

  /** A statement for every place that falls free would be one statement a task. */
  #worthFeeding({ lane }: Window): number {
    const { maxReady } = this.#queues.settingsOf(lane.queue);
    return Math.max(1, Math.min(leastShare, Math.floor(maxReady / 2)));
  }
}

function toFedEvent({ taskId, lane, priority }: ReadyRow, at: Date): TaskEvent {
  const { queue, taskType } = lane;
  return { taskId, queue, taskType, priority, from: 'pending', to: 'queued', attempt: 0, at };
}
