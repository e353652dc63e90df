import type { TaskId } from '../domain/ids.js';
import type { TaskEvent } from '../protocol/events.js';
import {
  findNextDue,
  readLines,
  wakeDue,
  type DueRow,
  type WantedFromLine,
} from '../store/feed-line.js';
import { withFeedTurns } from '../store/feed-turn.js';
import type { ReadyRow } from '../store/task-row.js';
import { findQueued } from '../store/walk-line.js';
import type { Left, Offer, Position, Stretch, Window } from '../ready/ready-queue.js';
import type { RecentWork } from './recent-work.js';
import { instant, tellAll, type EngineContext } from './context.js';
import { HeldOffers } from './held-offers.js';
import type { QueueDirectory } from './queue-directory.js';
import { Unoffered } from './unoffered.js';
import { WindowMap } from './windows.js';

const maxFedAtOnce = 1_000;
/** Parameters of more bytes are read when their task is claimed. */
const maxFedParameters = 2_000;
/** So many wait ready in a window that is fed. More would only take up memory: a feed takes milliseconds. */
const fedAhead = 2_000;
/** Where others take, too, it is looked at many times a second, and no more often. */
const sharedFedAhead = 4_000;
/** Of a window among many hungry ones; with as many places free, a window is worth feeding. */
const leastShare = 100;
const maxDueAtOnce = 2_000;
const maxWindowsAtOnce = 500;
/** A replica that does not lead is woken when it has something to offer. */
const followerLookMs = 60_000;
const lockedWaitMs = 100;
const closedWaitMs = 100;
const troubleWaitMs = 500;
/** Another server feeds it: so soon is it looked at again. */
const busyWaitMs = 10;
/** How often windows are looked at that others take from, unless there are very many of them. */
const lookIntervalMs = 50;
const windowsPerMs = 10;

/** A window to be fed: how many it has room for, and where its line was left. */
interface Hungry extends WantedFromLine {
  readonly window: Window;
  readonly left: Left;
}

/**
 * Reads the line in Postgres where the ready queue left it, oldest first, as room appears; nothing is
 * written. It looks only at windows that are hungry: they were left behind just now, or were taken
 * from. A full window costs nothing.
 *
 * With a ready queue that servers share, each has its feeder, and they take turns at a window. A
 * server hears only of what its own workers take, so windows that are behind are looked at many times
 * a second.
 */
export class Feeder {
  readonly #context: EngineContext;
  readonly #isShared: boolean;
  /** Workers of other processes claim as well. */
  readonly #isClaimedElsewhere: boolean;
  readonly #queues: QueueDirectory;
  readonly #recent: RecentWork;
  /** Windows that are behind, as far as is known here. */
  readonly #behind = new WindowMap<true>();
  readonly #hungry = new WindowMap<true>();
  readonly #unoffered = new Unoffered();
  readonly #held = new HeldOffers();
  #nextDiscoveryMs = 0;
  #nextDueMs = 0;
  #nextLookMs = Number.POSITIVE_INFINITY;
  /** Null while another process serves: its feeder finds what is due. */
  #wake: (() => void) | null = null;

  constructor(context: EngineContext, queues: QueueDirectory, recent: RecentWork) {
    this.#context = context;
    this.#isShared = context.mode === 'redis';
    this.#isClaimedElsewhere = context.mode !== 'memory';
    this.#queues = queues;
    this.#recent = recent;
  }

  begin(wake: () => void): void {
    this.#wake = wake;
    this.discoverSoon();
  }

  /** Another process leads, and feeds. */
  stopFeeding(): void {
    this.#behind.clear();
    this.#hungry.clear();
  }

  end(): void {
    this.#wake = null;
    this.stopFeeding();
    this.#unoffered.clear();
    this.#held.clear();
  }

  /** Fills a ready queue that was begun anew: nothing is taken from it before. */
  async fill(): Promise<void> {
    await this.#discover();
    while (this.#hungry.size > 0) await this.#feed();
  }

  /** Rows of these windows were left in line. */
  noteLeft(rows: readonly Window[]): void {
    if (!this.#feeds) return;
    for (const window of distinct(rows)) this.#note(window);
    if (rows.length > 0) this.#wake?.();
  }

  /** Some of its line was left, as far as is known here: what comes now is left as well, as a rule. */
  isBehind(window: Window): boolean {
    return this.#behind.size > 0 && this.#behind.has(window);
  }

  /** The ready queue was away or closed, and is told as soon as it is back. */
  noteUnoffered(offers: readonly Offer[]): void {
    // A process that only submits leaves it to the lap over the line.
    if (this.#wake === null) return;
    this.#unoffered.add(offers);
    this.#wake();
  }

  /** Something is due in `delayMs`, sooner than the next look may be. */
  noteDue(delayMs: number): void {
    const dueMs = performance.now() + delayMs;
    if (dueMs >= this.#nextDueMs) return;
    this.#nextDueMs = dueMs;
    this.#wake?.();
  }

  /** The ready queue was filled anew: all of its lines are to be fed. */
  discoverSoon(): void {
    this.#nextDiscoveryMs = 0;
    this.#wake?.();
  }

  /** These were taken from: refill them before they run dry. */
  noteTaken(windows: readonly Window[]): void {
    if (this.#behind.size === 0) return;
    for (const window of distinct(windows)) {
      if (this.#behind.has(window)) this.#hungry.set(window, true);
    }
    if (this.#hungry.size > 0) this.#wake?.();
  }

  async tick(): Promise<number> {
    if (this.#context.ready.trouble() !== null) return troubleWaitMs;
    if (!(await this.#tellUnoffered())) return closedWaitMs;
    if (this.#feeds && performance.now() >= this.#nextDiscoveryMs) await this.#discover();
    if (performance.now() >= this.#nextDueMs) await this.#wakeDue();
    if (performance.now() >= this.#nextLookMs) this.#lookAtAll();
    await this.#offer(this.#held.due());
    if (!this.#feeds) return this.#untilMs(performance.now() + followerLookMs);
    await this.#feed();
    if (this.#hungry.size > 0) return 0;
    // What other servers' workers take, nobody tells.
    if (this.#isShared && this.#behind.size > 0) {
      this.#lookIn(Math.max(lookIntervalMs, this.#behind.size / windowsPerMs));
    }
    return this.#untilMs(Math.min(this.#nextDiscoveryMs, this.#nextLookMs));
  }

  #untilMs(atMs: number): number {
    return Math.max(0, Math.min(atMs, this.#nextDueMs, this.#held.nextMs) - performance.now());
  }

  /** Among replicas the leader reads lines on. The others offer what they brought into line themselves. */
  get #feeds(): boolean {
    return this.#context.replicas?.leads ?? true;
  }

  /** They were taken, and are still in line: as they are now. */
  async offerAgain(taskIds: readonly TaskId[]): Promise<void> {
    await this.#offer(await findQueued(this.#context.db, taskIds, instant(this.#context)));
  }

  /** Offers what came into line; what finds no room is fed when there is some. */
  async #offer(rows: readonly ReadyRow[]): Promise<void> {
    if (rows.length === 0) return;
    const answer = await this.#context.ready.offer(rows);
    if (answer.kind === 'rebuild') {
      this.noteUnoffered(rows);
      return;
    }
    this.#held.settle(rows, answer.outcomes);
    this.noteLeft(rows.filter((_, index) => answer.outcomes[index] === 'left'));
  }

  /** False: it is still away or closed. Nothing is fed before it knows where its lines begin. */
  async #tellUnoffered(): Promise<boolean> {
    const places = this.#unoffered.takeAll();
    if (places.length === 0) return true;
    const isTold = await this.#context.ready.leave(places);
    if (isTold) this.noteLeft(places);
    else this.#unoffered.add(places);
    return isTold;
  }

  /** Windows that others left behind, and died or forgot; and what is due soon. */
  async #discover(): Promise<void> {
    const { db, ready, settings } = this.#context;
    this.#nextDiscoveryMs = performance.now() + settings.discoverIntervalMs;
    for (const window of await ready.listBehind()) this.#note(window);
    await this.#queues.ensure(this.#behind.windows().map(({ lane }) => lane.queue));
    this.#noteNextDue(await findNextDue(db, instant(this.#context)));
  }

  async #wakeDue(): Promise<void> {
    const { db } = this.#context;
    // Whoever notes something meanwhile is heard.
    this.#nextDueMs = Number.POSITIVE_INFINITY;
    const rows = await wakeDue(db, maxDueAtOnce, instant(this.#context));
    await this.#offer(rows);
    tellAll(this.#context, rows, toDueEvent);
    const nextDueInMs = await findNextDue(db, instant(this.#context));
    // What is due and yet was not woken is in somebody's hands: no use in asking again at once.
    const isLocked = rows.length === 0 && nextDueInMs !== null;
    this.#noteNextDue(isLocked ? Math.max(lockedWaitMs, nextDueInMs) : nextDueInMs);
  }

  /** What is later than the next look is told by it. */
  #noteNextDue(dueInMs: number | null): void {
    if (dueInMs === null || dueInMs > this.#context.settings.discoverIntervalMs) return;
    this.#nextDueMs = Math.min(this.#nextDueMs, performance.now() + dueInMs);
  }

  #note(window: Window): void {
    this.#behind.set(window, true);
    this.#hungry.set(window, true);
  }

  #lookIn(delayMs: number): void {
    this.#nextLookMs = Math.min(this.#nextLookMs, performance.now() + delayMs);
  }

  #lookAtAll(): void {
    this.#nextLookMs = Number.POSITIVE_INFINITY;
    for (const window of this.#behind.windows()) this.#hungry.set(window, true);
  }

  async #feed(): Promise<void> {
    const windows = this.#nextHungry();
    if (windows.length === 0) return;
    if (this.#isShared) await this.#feedInTurn(windows);
    else await this.#feedNow(windows);
  }

  #nextHungry(): Window[] {
    const windows = this.#hungry.windows().slice(0, maxWindowsAtOnce);
    for (const window of windows) this.#hungry.delete(window);
    return windows;
  }

  /** A turn costs Postgres something, a look does not. */
  async #feedInTurn(windows: readonly Window[]): Promise<void> {
    const looks = await this.#context.ready.look(windows);
    const roomy = windows.filter((window, index) => {
      const look = looks[index];
      if (look?.left === null) this.#behind.delete(window);
      return look?.left && this.#wantedIn(window, look.room) >= this.#worthFeeding(window);
    });
    if (roomy.length === 0) return;
    await withFeedTurns(this.#context.db, roomy, async (areOurs) => {
      const ours = roomy.filter((_, index) => areOurs[index] === true);
      if (ours.length < roomy.length) this.#lookIn(busyWaitMs);
      await this.#feedNow(ours);
    });
  }

  async #feedNow(windows: readonly Window[]): Promise<void> {
    const hungry = await this.#beginFeed(windows);
    if (hungry.length === 0) return;
    const lines = await readLines(
      this.#context.db,
      hungry,
      instant(this.#context),
      this.#bytesForEach(hungry),
    );
    for (const { taskId, known } of lines.flat()) {
      if (known !== null) this.#recent.noteTask(taskId, known);
    }
    const stretches = hungry.map((wanted, index) => stretchOf(wanted, lines[index] ?? []));
    await this.#context.ready.feed(stretches);
    // Whether there is more, or it has to be read again: the next look tells.
    for (const { window } of hungry) this.#note(window);
  }

  /** Those with room that is worth a statement. One that nothing was left of is let go. */
  async #beginFeed(windows: readonly Window[]): Promise<Hungry[]> {
    const share = Math.max(leastShare, Math.ceil(maxFedAtOnce / Math.max(1, windows.length)));
    const looks = await this.#context.ready.beginFeed(windows);
    return windows.flatMap((window, index) => {
      const { room = 0, left = null } = looks[index] ?? {};
      if (left === null) this.#behind.delete(window);
      const wanted = this.#wantedIn(window, room);
      if (left === null || wanted < this.#worthFeeding(window)) return [];
      return [{ window, left, from: left.from, limit: Math.min(wanted, share) }];
    });
  }

  /** So large may parameters be that come with what is fed. */
  #bytesForEach(hungry: readonly Hungry[]): number {
    const tasks = hungry.reduce((sum, { limit }) => sum + limit, 0);
    const bytes = this.#isClaimedElsewhere
      ? this.#recent.sharedRoomForEach(tasks)
      : this.#recent.roomForEach(tasks);
    return Math.min(maxFedParameters, bytes);
  }

  #wantedIn({ lane }: Window, room: number): number {
    const { maxReady } = this.#queues.settingsOf(lane.queue);
    return room - Math.max(0, maxReady - (this.#isShared ? sharedFedAhead : fedAhead));
  }

  /** A statement for every place that falls free would be one statement a task. */
  #worthFeeding({ lane }: Window): number {
    const { maxReady } = this.#queues.settingsOf(lane.queue);
    return Math.max(1, Math.min(leastShare, Math.floor(maxReady / 2)));
  }
}

/** Neighbours are of one window, as a rule: without most of the repetitions. */
function distinct(rows: readonly Window[]): Window[] {
  return rows.filter(({ lane, priority }, index) => {
    const before = rows[index - 1];
    return lane !== before?.lane || priority !== before.priority;
  });
}

/** Less than was asked for: that was the end of the line. */
function stretchOf({ window, left, limit }: Hungry, offers: readonly ReadyRow[]): Stretch {
  const last = offers.at(-1);
  const next = last === undefined || offers.length < limit ? null : positionAfter(last);
  return { window, round: left.round, offers, next };
}

function positionAfter({ eligibleAtMs, seq }: Position): Position {
  return { eligibleAtMs, seq: seq + 1 };
}

function toDueEvent({ taskId, lane, priority, attempt, trace }: DueRow, at: Date): TaskEvent {
  const { queue, taskType } = lane;
  return { taskId, queue, taskType, priority, from: 'pending', to: 'queued', attempt, trace, at };
}
