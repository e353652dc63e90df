import type { WorkerId } from '../domain/ids.js';
import { everyType, type Lane } from '../domain/lane.js';
import { IndexedHeap } from '../ready/indexed-heap.js';
import type { Wake } from '../ready/ready-queue.js';
import { PollWaiter, type WaitingPoll } from './poll-waiter.js';
import type { WakeOrder } from './settings.js';
import { WaitGroup, filterKey, type Opening } from './wait-group.js';

/**
 * Polls that look for work. Each is here from before it looks until it has its answer, so that no
 * wake-up falls between a look that found nothing and the wait. Those with the same filter are a
 * group: what one of them learns is true for all, and one of them looks for all. An offer wakes as
 * many as it has entries for.
 */
export class PollWaiters {
  readonly #isBefore: (a: PollWaiter, b: PollWaiter) => boolean;
  /** Those who wait at other servers. */
  readonly #wakeOthers: (wake: Wake) => void;
  /** With their groups; null: it asks for nothing but news. */
  readonly #waiters = new Map<PollWaiter, WaitGroup | null>();
  readonly #groups = new Map<string, WaitGroup>();

  constructor(order: WakeOrder = 'spread', wakeOthers: (wake: Wake) => void = () => undefined) {
    this.#isBefore = order === 'spread' ? isLessLoaded : hasEarlierWorker;
    this.#wakeOthers = wakeOthers;
  }

  enter(poll: WaitingPoll): PollWaiter {
    const waiter = new PollWaiter(poll);
    const group = this.#groupOf(poll);
    this.#waiters.set(waiter, group);
    group?.enter(waiter);
    return waiter;
  }

  /** A wake-up that it got and did not use goes to somebody who can. */
  leave(waiter: PollWaiter): void {
    const group = this.#waiters.get(waiter);
    this.#waiters.delete(waiter);
    group?.leave(waiter);
    if (group?.isEmpty === true && this.#groups.get(group.key) === group) {
      this.#groups.delete(group.key);
    }
    waiter.takeReason()?.passOn();
    waiter.takeWakeUp()?.passOn();
  }

  /** False: others with its filter have looked, and will look again when it is time. */
  shouldLook(waiter: PollWaiter): boolean {
    const group = this.#waiters.get(waiter) ?? null;
    return group !== null && (waiter.hasReason || !group.isClosed);
  }

  /** A look that was made for a wake-up has used it, whatever it found. */
  answered(waiter: PollWaiter, opening: Opening): void {
    const lanes = waiter.takeReason()?.lanes ?? [];
    this.#waiters.get(waiter)?.answered(waiter, opening);
    if (typeof opening !== 'number' || lanes.length === 0) return;
    // What it was woken for may be there and closed: nobody who could take it may sleep longer.
    const atMs = performance.now() + opening;
    for (const group of this.#ableGroups(lanes)) group.lookBy(atMs);
  }

  get areAny(): boolean {
    return this.#groups.size > 0;
  }

  /** How many entries of a lane those who wait would take. */
  wanted(lane: Lane): number {
    return this.#ableGroups([lane]).reduce((count, group) => count + group.wanted, 0);
  }

  /** Answers for how many entries it woke somebody. */
  wake({ lanes, count }: Wake): number {
    if (this.#groups.size === 0) return 0;
    const able = this.#ableGroups(lanes);
    if (able.length === 0) return 0;
    for (const group of able) group.noteWake();
    if (lanes.some(({ taskType }) => taskType === everyType)) return ringAll(able, count);
    const line = new IndexedHeap<WaitGroup>((a, b) => this.#comesBefore(a, b));
    for (const group of able) if (!group.isEmpty) line.push(group);
    let left = count;
    for (let group = line.peek(); left > 0 && group !== undefined; group = line.peek()) {
      const waiter = group.next();
      if (group.isEmpty) line.remove(group);
      else line.update(group);
      if (waiter === undefined) continue;
      const share = { lanes, count: Math.min(left, waiter.count) };
      waiter.end({ lanes, passOn: () => this.wakeAnywhere(share) });
      left -= share.count;
    }
    if (left > 0) for (const group of able) group.open();
    return count - left;
  }

  /** Here, or at another server. */
  wakeAnywhere(wake: Wake): void {
    const left = wake.count - this.wake(wake);
    if (left > 0) this.#wakeOthers({ lanes: wake.lanes, count: left });
  }

  wakeWorker(workerId: WorkerId): void {
    for (const waiter of this.#waiters.keys()) if (waiter.workerId === workerId) waiter.end(null);
  }

  /** Those of its polls that could get nothing: they are in no group, and no wake-up finds them. */
  wakeIfDenied(workerId: WorkerId): void {
    for (const waiter of this.#waiters.keys()) {
      if (waiter.workerId === workerId && waiter.count === 0) waiter.end(null);
    }
  }

  /** The ready queue has other contents: of each group, one looks. */
  lookAgain(): void {
    for (const group of this.#groups.values()) {
      group.noteWake();
      group.ring();
    }
  }

  /** This process may have ended to serve: all have to know. */
  wakeAll(): void {
    for (const waiter of this.#waiters.keys()) waiter.end(null);
  }

  #groupOf({ request }: WaitingPoll): WaitGroup | null {
    if (request.count === 0) return null;
    const key = filterKey(request);
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new WaitGroup(key, request, this.#isBefore);
      this.#groups.set(key, group);
    }
    return group;
  }

  #ableGroups(lanes: Wake['lanes']): WaitGroup[] {
    return [...this.#groups.values()].filter((group) => group.canTakeAny(lanes));
  }

  #comesBefore(a: WaitGroup, b: WaitGroup): boolean {
    const { first } = a;
    const other = b.first;
    return first !== undefined && other !== undefined && this.#isBefore(first, other);
  }
}

/**
 * Nobody knows which of them can do what there is: one of each looks. None of it is told to other servers
 * as done.
 */
function ringAll(able: readonly WaitGroup[], count: number): number {
  for (const group of able) group.ring();
  return Math.min(count - 1, able.length);
}

function isLessLoaded(a: PollWaiter, b: PollWaiter): boolean {
  return a.load === b.load ? a.sinceMs < b.sinceMs : a.load < b.load;
}

/** The ids of workers are as stable an order as any, and the same on every server. */
function hasEarlierWorker(a: PollWaiter, b: PollWaiter): boolean {
  return a.workerId === b.workerId ? a.sinceMs < b.sinceMs : a.workerId < b.workerId;
}
