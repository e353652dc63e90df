import type { TaskId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import type { Priority } from '../domain/priority.js';
import type { Cost, QueueSettings, RateLimit } from '../domain/queue-settings.js';

/**
 * Decides what may run next. Volatile, bounded, rebuildable: an entry may be missing, stale or
 * duplicated, and only latency changes, since every claim is a compare-and-set in Postgres.
 * One contract suite (`ready-queue.contract.ts`) holds for every implementation.
 */
export interface ReadyQueue {
  /**
   * Asked before `restore`. `yours`: it is closed, and this process is to restore it soon. `busy`:
   * another process is at it, or the queue can't be reached. `open`: it has contents of this very
   * generation, the one that Postgres takes claims of.
   */
  beginRestore(generation: number): Promise<'yours' | 'busy' | 'open'>;
  /**
   * Empties it, brings back limits with their levels, settings and what runs, notes the windows that
   * have a line, and opens it for takes; feeds follow. False: it took too long, and another process
   * is at it by now.
   */
  restore(state: ReadyState): Promise<boolean>;
  /**
   * Answers in order. Lists go in whole: one call is one round trip. Whoever is older than the
   * youngest of a full window takes its place, and that one is left.
   */
  offer(offers: readonly Offer[]): Promise<OfferAnswer>;
  /**
   * Offers what has no place in line yet, since it is about to be written: it is taken after all that comes
   * into its window. Answers with those that went in; never into a window that is full or behind, or in
   * which something waits, and none where other processes could take them. Whoever announces takes back
   * what nobody took.
   */
  announce(newcomers: readonly Newcomer[]): Promise<readonly TaskId[]>;
  /** As `offer`, for what was read from the line after `beginFeed` had said where it was left. */
  feed(stretches: readonly Stretch[]): Promise<OfferAnswer>;
  /** These could not be offered: they are left in line. False: it could not be told. */
  leave(places: readonly Place[]): Promise<boolean>;
  /** What there is to feed, window by window; while it is closed, no room. */
  look(windows: readonly Window[]): Promise<readonly WindowLook[]>;
  /** The same, and a new round: what is left from now on may be missing from what is read. */
  beginFeed(windows: readonly Window[]): Promise<readonly WindowLook[]>;
  /** All windows that rows were left of. */
  listBehind(): Promise<readonly Window[]>;
  /** Atomic: routing, priority with ageing, turns, limits and pauses in one step. */
  take(request: TakeRequest): Promise<TakeAnswer>;
  /** Postgres granted these: from now on they run, until `finish`. */
  confirm(grants: readonly Grant[]): Promise<void>;
  /** Postgres refused these: slot and probe come back, and tokens where that breaks no bound. */
  refund(grants: readonly Grant[]): Promise<void>;
  /** No longer running, whatever the outcome: frees the slot, settles the real usage. */
  finish(finished: readonly Finished[]): Promise<void>;
  /** Not to be taken any more: cancelled, expired or changed. */
  remove(taskIds: readonly TaskId[]): Promise<void>;
  /**
   * Counts for the very next take. An older version than the one held is ignored. Null: it could not
   * be told, and has to be told again.
   */
  configure(change: Configuration): Promise<Configured | null>;
  /** Which of these it does not hold, waiting, taken or running. */
  missing(taskIds: readonly TaskId[]): Promise<readonly TaskId[]>;
  /** What is taken or runs, a stretch at a time, since when and under which grant. */
  listOut(after: OutCursor | null, limit: number): Promise<OutStretch>;
  /** Of every bucket that may have changed since `levels` was last asked, as of now. */
  levels(): Promise<readonly BucketLevel[]>;
  live(queue: string): Promise<LiveQueue>;
  /**
   * Every queue that has something waiting or running. A few steps for each of them, and never all at once:
   * what changes meanwhile may be seen or not. `noteAge` hears of a sample of what waits.
   */
  survey(noteAge: NoteAge): Promise<readonly SurveyedQueue[]>;
  /** How many of its queue would be taken before it, counted up to `limit`; null: it does not wait. */
  position(taskId: TaskId, limit: number): Promise<number | null>;
  /**
   * Called when something may have become takeable; the listener answers for how many entries it
   * woke somebody. Other processes hear of the rest. Answers with how to stop listening.
   */
  onWake(listener: (wake: Wake) => number): () => void;
  /** Something may be taken, and nobody here waits for it: others may. */
  wakeOthers(wake: Wake): void;
  /** Null while it can be reached; else why not. */
  trouble(): string | null;
  /** Called when it can be reached again. Answers with how to stop listening. */
  onReturn(listener: () => void): () => void;
  close(): Promise<void>;
}

/** Where a task stands in the line of its window. */
export interface Position {
  /**
   * By the clock of Postgres, and for the order alone: ages that were read in two statements differ
   * by what each took to arrive, and tasks of one batch would overtake each other.
   */
  readonly eligibleAtMs: number;
  /** Insert order, among those that became eligible at the same instant. */
  readonly seq: number;
}

/** The places of one lane and submitted priority. */
export interface Window {
  readonly lane: Lane;
  readonly priority: Priority;
}

export interface Place extends Window, Position {}

export interface Newcomer extends Window {
  readonly taskId: TaskId;
  readonly cost: Cost;
}

export interface Offer extends Newcomer, Place {
  /** An age, not a timestamp: the clocks of Postgres and of this queue need not agree. */
  readonly ageMs: number;
}

/**
 * `held`: it was there already. `left`: it stays in line, since its window has no room, or since
 * something older was left before it. The window is behind from then on, until it was fed to the end.
 */
export type OfferOutcome = 'accepted' | 'held' | 'left';

export type OfferAnswer =
  | { readonly kind: 'offered'; readonly outcomes: readonly OfferOutcome[] }
  | { readonly kind: 'rebuild' };

export interface WindowLook {
  readonly room: number;
  /** Null: nothing was left. */
  readonly left: Left | null;
}

/** Of a window that is behind. */
export interface Left {
  /** All that is older was offered; the rest of the line begins here. */
  readonly from: Position;
  /** Of the feed that began last, until it is done. */
  readonly round: number;
}

/** A piece of a window's line, from where it was left on. */
export interface Stretch {
  readonly window: Window;
  /** When another feed began since, these are offers like others. */
  readonly round: number;
  /** Oldest first. */
  readonly offers: readonly Offer[];
  /** Where the line goes on; null: this was the end of it. */
  readonly next: Position | null;
}

export interface TakeRequest {
  /** Null: every type. */
  readonly taskTypes: readonly string[] | null;
  readonly capabilities: readonly string[];
  /** Null: every queue. */
  readonly queues: readonly string[] | null;
  readonly count: number;
}

/**
 * One taking of one task. After a rebuild the same task may be taken anew while the claim of the
 * first taking is still under way: what becomes of that must not touch the second's slot and tokens.
 */
export interface Grant {
  readonly taskId: TaskId;
  /** The generation, as much of it as a lease can name, and a number: see `leaseNaming`. */
  readonly grant: string;
}

export interface Taken extends Grant {
  readonly lane: Lane;
  readonly priority: Priority;
  /** As it was when taken. */
  readonly effectivePriority: Priority;
}

export type TakeAnswer =
  | {
      readonly kind: 'taken';
      /** Of the contents that this was taken from: Postgres refuses a claim of an older one. */
      readonly generation: number;
      /** At least one. */
      readonly entries: readonly Taken[];
      /** The lane that the same take would take from, if it were made again now. */
      readonly next: Lane | null;
      /** Until when, as for `wait`; 0 with a `next`. */
      readonly waitMs: number | null;
    }
  /** Exactly how long until something held could be taken; null: not before a wake-up. */
  | { readonly kind: 'wait'; readonly waitMs: number | null }
  /** Its contents are gone: nothing is taken until `restore`. */
  | { readonly kind: 'rebuild' };

/** Ends the taking with this grant, and no other one of the task, however late it is told. */
export interface Finished extends Grant {
  readonly queue: string;
  readonly reserved: Cost;
  readonly usage: Cost | null;
}

export interface ConfiguredQueue {
  readonly name: string;
  readonly version: number;
  readonly settings: QueueSettings;
  /** What is left of `settings.pausedUntil`: the clocks of Postgres and of this queue may differ. */
  readonly pausedForMs: number | null;
  /**
   * At most this many are taken from it under this version; null: no bound. What Postgres refused does
   * not count.
   */
  readonly probes: number | null;
}

/** A limit that queues share by its name. */
export interface ConfiguredLimit {
  readonly name: string;
  readonly version: number;
  readonly limit: RateLimit;
}

/**
 * Limits first. A queue that uses a limit which is not known gives nothing: to let it pass would be
 * to exceed it.
 */
export interface Configuration {
  readonly limits: readonly ConfiguredLimit[];
  readonly queues: readonly ConfiguredQueue[];
}

/** Since when a change counts: for what this generation granted after this number. */
export interface Configured {
  readonly generation: number;
  readonly lastGrant: number;
}

export interface ReadyState extends Configuration {
  /** Grows with every restore. */
  readonly generation: number;
  /** Buckets that are not named start full. */
  readonly levels: readonly BucketLevel[];
  readonly running: readonly Running[];
  /** Their lines are to be fed from the beginning. */
  readonly behind: readonly Window[];
}

/** Under the grant that its end will name. */
export interface Running extends Grant {
  readonly queue: string;
}

/** See `ownBucket` and `sharedBucket`. Below zero: in debt. */
export interface BucketLevel {
  readonly bucket: string;
  readonly tokens: number;
}

/** Opaque; since when, and where in that millisecond. */
export type OutCursor = string;

export interface OutStretch {
  readonly entries: readonly Out[];
  /** Null: this was the last stretch. */
  readonly next: OutCursor | null;
}

export interface Out extends Grant {
  readonly queue: string;
  /** False: taken, and Postgres has not granted it yet. */
  readonly confirmed: boolean;
  readonly forMs: number;
}

export interface LiveQueue {
  readonly depth: Readonly<Record<Priority, number>>;
  readonly effectiveDepth: Readonly<Record<Priority, number>>;
  /** Confirmed; what is taken and not yet confirmed holds a slot, but does not run. */
  readonly running: number;
  readonly oldestAgeMs: number | null;
  /** Of its own limits and of those it shares, in the order of its settings. */
  readonly buckets: readonly LiveBucket[];
}

/** What keeps a queue from being taken from while something waits in it. `probes`: its circuit is half open. */
export type HeldBackBy = 'pause' | 'probes' | 'max_concurrency' | 'rate_limit';

export interface SurveyedQueue {
  readonly queue: string;
  /** By submitted priority. */
  readonly depth: Readonly<Record<Priority, number>>;
  /** By effective priority. */
  readonly waiting: Readonly<Record<Priority, Waiting>>;
  readonly running: number;
  readonly heldBackBy: HeldBackBy | null;
}

export interface Waiting {
  readonly count: number;
  readonly oldestAgeMs: number | null;
}

/** An entry of the sample stands for so many; the priority is the effective one. */
export type NoteAge = (priority: Priority, ageMs: number, count: number) => void;

export interface LiveBucket extends BucketLevel {
  readonly limit: RateLimit;
  /** Granted in the window up to now, to a tenth of the window. */
  readonly used: number;
  /** Of the window, what was counted: less when the ready queue was filled later. */
  readonly countedMs: number;
}

/** Up to `count` entries of these lanes may be taken, or their wait has changed. */
export interface Wake {
  readonly lanes: readonly Lane[];
  readonly count: number;
}
