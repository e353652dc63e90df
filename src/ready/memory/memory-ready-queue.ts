import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TaskId } from '../../domain/ids.js';
import { anyLaneOf, type Lane } from '../../domain/lane.js';
import { grantGenerations } from '../../domain/lease.js';
import { priorityOf, rankOf, type Ageing, type PriorityRank } from '../../domain/priority.js';
import { defaultQueueSettings } from '../../domain/queue-settings.js';
import type { Clock } from '../../runtime/clock.js';
import { Buckets } from './buckets.js';
import { Walk, NamedLane, type LaneSource } from './walk.js';
import { configureQueue } from './configure-queue.js';
import { IndexedHeap } from '../indexed-heap.js';
import { LaneDirectory } from './lane-directory.js';
import { isBefore, lineStart } from '../left-line.js';
import { LeftLines } from './left-lines.js';
import { liveQueue } from './live-queue.js';
import { Openings } from './openings.js';
import { OutList, type OutEntry } from './out-list.js';
import type { Review } from './queue-state.js';
import { surveyQueue, surveySteps } from './queue-survey.js';
import { levelOf, ReadyLane, type Queue, type ReadyEntry } from './ready-lane.js';
import type {
  BucketLevel,
  Configuration,
  Configured,
  ConfiguredQueue,
  Finished,
  Grant,
  LiveQueue,
  Newcomer,
  NoteAge,
  Offer,
  OfferAnswer,
  OfferOutcome,
  OutCursor,
  OutStretch,
  Place,
  Position,
  ReadyQueue,
  ReadyState,
  Running,
  Stretch,
  SurveyedQueue,
  TakeAnswer,
  Taken,
  TakeRequest,
  Wake,
  Window,
  WindowLook,
} from '../ready-queue.js';
import { SharedLimits } from './shared-limits.js';
import { SteadyClock } from './steady-clock.js';

/**
 * The ready queue of one process. Every operation runs to its end without waiting, so each is
 * atomic; wake-ups are told last, when a listener may call back in.
 */
export class MemoryReadyQueue implements ReadyQueue {
  readonly #clock: SteadyClock;
  readonly #directory = new LaneDirectory();
  readonly #left = new LeftLines(this.#directory);
  readonly #waiting = new Map<TaskId, ReadyEntry>();
  /** Taken and running. */
  readonly #out = new OutList();
  readonly #buckets = new Buckets();
  readonly #shared = new SharedLimits(this.#buckets);
  readonly #listeners = new Set<(wake: Wake) => number>();
  #reviews = new IndexedHeap<Review<Queue>>(isEarlier);
  #isOpen = false;
  #generation = 0;
  #turns = 0;
  #takes = 0;
  #announcements = 0;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = new SteadyClock(clock);
  }

  /** How much is held and remembered. */
  get sizes(): LaneDirectory['sizes'] & { readonly entries: number } {
    return { entries: this.#waiting.size + this.#out.size, ...this.#directory.sizes };
  }

  async beginRestore(): Promise<'yours'> {
    this.#isOpen = false;
    return 'yours';
  }

  async restore(state: ReadyState): Promise<boolean> {
    const { generation, levels, running, behind, ...configuration } = state;
    this.#empty();
    const nowMs = this.#clock.nowMs();
    for (const limit of configuration.limits) this.#shared.configure(limit, nowMs);
    for (const configured of configuration.queues) this.#configure(configured, nowMs);
    this.#buckets.restore(levels, nowMs);
    for (const one of running) this.#restoreRunning(one, nowMs);
    for (const window of behind) this.#leave({ ...window, ...lineStart });
    this.#generation = generation;
    this.#isOpen = true;
    return true;
  }

  async offer(offers: readonly Offer[]): Promise<OfferAnswer> {
    if (!this.#isOpen) return { kind: 'rebuild' };
    const changes = new Changes(this.#clock.nowMs());
    const outcomes = this.#offerAll(offers, changes);
    this.#tell(changes);
    return { kind: 'offered', outcomes };
  }

  async announce(newcomers: readonly Newcomer[]): Promise<readonly TaskId[]> {
    if (!this.#isOpen) return [];
    const changes = new Changes(this.#clock.nowMs());
    const accepted = newcomers.filter((newcomer) => this.#announce(newcomer, changes));
    this.#tell(changes);
    return accepted.map(({ taskId }) => taskId);
  }

  async feed(stretches: readonly Stretch[]): Promise<OfferAnswer> {
    if (!this.#isOpen) return { kind: 'rebuild' };
    const changes = new Changes(this.#clock.nowMs());
    const outcomes = stretches.flatMap((stretch) => this.#feed(stretch, changes));
    this.#tell(changes);
    return { kind: 'offered', outcomes };
  }

  async leave(places: readonly Place[]): Promise<boolean> {
    if (this.#isOpen) for (const place of places) this.#leave(place);
    return this.#isOpen;
  }

  async look(windows: readonly Window[]): Promise<readonly WindowLook[]> {
    return windows.map((window) => this.#look(window));
  }

  async beginFeed(windows: readonly Window[]): Promise<readonly WindowLook[]> {
    for (const { lane, priority } of windows) {
      const line = this.#directory.findLane(lane)?.leftOf(rankOf(priority)) ?? null;
      if (line !== null) this.#left.beginFeed(line);
    }
    return windows.map((window) => this.#look(window));
  }

  async listBehind(): Promise<readonly Window[]> {
    return this.#left.windows();
  }

  async take(request: TakeRequest): Promise<TakeAnswer> {
    if (request.count < 1) throw new RangeError('a take asks for one entry at least');
    if (!this.#isOpen) return { kind: 'rebuild' };
    const nowMs = this.#clock.nowMs();
    this.#catchUp(nowMs);
    const { sources, areAll } = this.#sources(request, nowMs);
    const walk = new Walk(sources, nowMs);
    const entries = this.#takeFrom(walk, request.count, nowMs);
    const next = walk.next()?.lane.lane ?? null;
    const atLatest = areAll ? never : nowMs + lookAgainMs;
    const waitMs = next === null ? waitUntil(Math.min(walk.opensAt(), atLatest), nowMs) : 0;
    this.#settleShort(walk, nowMs);
    if (entries.length === 0) return { kind: 'wait', waitMs };
    return { kind: 'taken', generation: this.#generation, entries, next, waitMs };
  }

  async confirm(grants: readonly Grant[]): Promise<void> {
    for (const entry of this.#findTaken(grants)) {
      // The same grant twice in a call counts once.
      if (entry.confirmed) continue;
      entry.confirmed = true;
      entry.queue.running += 1;
    }
  }

  async refund(grants: readonly Grant[]): Promise<void> {
    const openings = new Openings(this.#clock.nowMs());
    for (const entry of this.#findTaken(grants)) {
      // The same grant twice in a call counts once.
      if (this.#release(entry, openings)) openings.refund(entry);
    }
    this.#open(openings);
  }

  async finish(finished: readonly Finished[]): Promise<void> {
    const openings = new Openings(this.#clock.nowMs());
    for (const one of finished) {
      const entry = this.#out.find(one);
      const queue = one.usage === null ? null : this.#directory.findQueue(one.queue);
      if (queue !== null) openings.settle(queue, one, entry !== null);
      if (entry !== null) this.#release(entry, openings);
    }
    this.#open(openings);
  }

  async remove(taskIds: readonly TaskId[]): Promise<void> {
    const nowMs = this.#clock.nowMs();
    const unblocked = new Set<Queue>();
    for (const taskId of taskIds) {
      const entry = this.#waiting.get(taskId);
      if (entry === undefined) continue;
      const { queue } = entry.lane;
      if (this.#leaveLane(entry, nowMs)) unblocked.add(queue);
      this.#directory.noteQueue(queue);
    }
    for (const queue of unblocked) this.#wakeFor(queue, nowMs);
  }

  async configure({ limits, queues }: Configuration): Promise<Configured | null> {
    const nowMs = this.#clock.nowMs();
    const changedLimits = limits.filter((limit) => this.#shared.configure(limit, nowMs));
    for (const { name } of changedLimits) {
      for (const group of this.#directory.groupsSharing(name)) group.reopenAll(nowMs);
    }
    const changed = queues.flatMap((configured) => this.#configure(configured, nowMs) ?? []);
    this.#wakeSharing(changedLimits.map(({ name }) => name));
    for (const queue of changed) this.#wakeFor(queue, nowMs);
    if (!this.#isOpen) return null;
    return { generation: this.#generation, lastGrant: this.#takes - 1 };
  }

  async missing(taskIds: readonly TaskId[]): Promise<readonly TaskId[]> {
    return taskIds.filter((taskId) => !this.#holds(taskId));
  }

  async listOut(after: OutCursor | null, limit: number): Promise<OutStretch> {
    return this.#out.list(after, limit, this.#clock.nowMs());
  }

  async levels(): Promise<readonly BucketLevel[]> {
    return this.#buckets.levels(this.#clock.nowMs());
  }

  async live(name: string): Promise<LiveQueue> {
    return liveQueue(this.#directory.findQueue(name), this.#clock.nowMs());
  }

  /** In slices, so that takes come in between: 10,000 queues of 100 entries take 30 ms in all. */
  async survey(noteAge: NoteAge): Promise<readonly SurveyedQueue[]> {
    const surveyed: SurveyedQueue[] = [];
    let steps = 0;
    for (const queue of this.#directory.queues()) {
      steps += surveySteps(queue);
      if (steps >= surveyStepsAtOnce) {
        await nextTurn();
        steps = 0;
      }
      if (queue.waiting === 0 && queue.running === 0) continue;
      surveyed.push(surveyQueue(queue, this.#clock.nowMs(), noteAge));
    }
    return surveyed;
  }

  async position(taskId: TaskId, limit: number): Promise<number | null> {
    const entry = this.#waiting.get(taskId);
    if (entry === undefined) return null;
    const nowMs = this.#clock.nowMs();
    const { queue } = entry.lane;
    let count = entry.lane.countBefore(entry, nowMs, limit);
    for (const lane of queue.lanes(lanesCounted)) {
      if (lane !== entry.lane) count += lane.countBefore(entry, nowMs, limit - count);
    }
    // Whatever was submitted with a higher priority than this one has by now comes first.
    let above = 0;
    for (let rank: PriorityRank = 0; rank < levelOf(entry, nowMs); rank += 1) {
      above += queue.waitingOf(rank as PriorityRank);
    }
    return Math.min(limit, Math.max(count, above));
  }

  onWake(listener: (wake: Wake) => number): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  wakeOthers(): void {
    // There are no others.
  }

  trouble(): null {
    return null;
  }

  /** It is never away. */
  onReturn(): () => void {
    return () => undefined;
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#empty();
  }

  #empty(): void {
    this.#isOpen = false;
    this.#waiting.clear();
    this.#out.clear();
    this.#directory.clear();
    this.#left.clear();
    this.#buckets.clear();
    this.#shared.clear();
    this.#reviews = new IndexedHeap(isEarlier);
  }

  #holds(taskId: TaskId): boolean {
    return this.#waiting.has(taskId) || this.#out.has(taskId);
  }

  #offerAll(offers: readonly Offer[], changes: Changes): OfferOutcome[] {
    let lane: ReadyLane | null = null;
    return offers.map((offer) => {
      if (this.#holds(offer.taskId)) return 'held';
      // Batches come lane by lane, as a rule: most lookups are saved.
      if (lane === null || !isSameLane(lane.lane, offer.lane)) {
        lane = this.#directory.ensureLane(offer.lane);
      }
      return this.#offer(offer, lane, changes);
    });
  }

  #offer(offer: Offer, lane: ReadyLane, changes: Changes): OfferOutcome {
    const rank = rankOf(offer.priority);
    const line = lane.leftOf(rank);
    const isBehind = line !== null && !isBefore(offer, line.from);
    if (!isBehind && (hasRoom(lane, rank) || this.#pushOut(offer, lane, rank, changes))) {
      return this.#accept(offer, lane, changes);
    }
    this.#left.leave(lane, rank, offer);
    return 'left';
  }

  #announce(newcomer: Newcomer, changes: Changes): boolean {
    const lane = this.#directory.ensureLane(newcomer.lane);
    const rank = rankOf(newcomer.priority);
    if (lane.leftOf(rank) !== null || !hasRoom(lane, rank)) return false;
    // Behind one that waits it would wait as well. To come and go there takes a window its order, and
    // every later position would be counted: 140 µs for each submit to a queue at its limit.
    const youngest = lane.youngest(rank);
    if (youngest !== null && youngest.orderedAt < noPlace) return false;
    this.#announcements += 1;
    const { taskId, priority, cost } = newcomer;
    const seq = this.#announcements;
    const offer = { lane: lane.lane, priority, taskId, ageMs: 0, eligibleAtMs: noPlace, seq, cost };
    this.#accept(offer, lane, changes);
    return true;
  }

  /** The youngest of a full window makes room for one that is older. */
  #pushOut(offer: Offer, lane: ReadyLane, rank: PriorityRank, changes: Changes): boolean {
    const youngest = lane.youngest(rank);
    if (youngest === null) return false;
    const position = positionOf(youngest);
    if (!isBefore(offer, position)) return false;
    if (this.#leaveLane(youngest, changes.nowMs)) changes.unblocked.add(lane.queue);
    if (position.eligibleAtMs < noPlace) this.#left.leave(lane, rank, position);
    return true;
  }

  #feed({ window, round, offers, next }: Stretch, changes: Changes): OfferOutcome[] {
    const rank = rankOf(window.priority);
    const lane = this.#directory.findLane(window.lane);
    const line = lane?.leftOf(rank) ?? null;
    if (lane === null || line?.round !== round) return this.#offerAll(offers, changes);
    const outcomes = offers.map((offer): OfferOutcome => {
      if (this.#holds(offer.taskId)) return 'held';
      if (hasRoom(lane, rank)) return this.#accept(offer, lane, changes);
      line.leave(offer);
      return 'left';
    });
    this.#left.feed(lane, rank, line, next);
    return outcomes;
  }

  #look({ lane, priority }: Window): WindowLook {
    if (!this.#isOpen) return closedLook;
    const settings = this.#directory.findQueue(lane.queue)?.settings ?? defaultQueueSettings;
    const known = this.#directory.findLane(lane);
    const rank = rankOf(priority);
    const room = Math.max(0, settings.maxReady - (known?.sizeOf(rank) ?? 0));
    const line = known?.leftOf(rank) ?? null;
    return { room, left: line && { from: line.from, round: line.round } };
  }

  #leave(place: Place): void {
    this.#left.leave(this.#directory.ensureLane(place.lane), rankOf(place.priority), place);
  }

  #tell({ accepted, unblocked, nowMs }: Changes): void {
    for (const [{ lane }, count] of accepted) this.#wake({ lanes: [lane], count });
    for (const queue of unblocked) this.#wakeFor(queue, nowMs);
  }

  #accept(offer: Offer, lane: ReadyLane, { accepted, nowMs }: Changes): 'accepted' {
    const { taskId, priority, ageMs, eligibleAtMs, seq, cost } = offer;
    const { queue } = lane;
    accepted.set(lane, (accepted.get(lane) ?? 0) + 1);
    const wasIdle = queue.isIdle;
    const wasEmpty = lane.size === 0;
    // New queues stand at the end of the line: before it, an endless stream of them would keep
    // those that wait from ever having another turn.
    if (queue.turn === 0) queue.turn = this.#nextTurn();
    const entry: ReadyEntry = {
      place: -1,
      taskId,
      lane,
      rank: rankOf(priority),
      eligibleAt: nowMs - Math.round(ageMs),
      orderedAt: eligibleAtMs,
      seq,
      cost,
      nth: 0,
    };
    this.#waiting.set(taskId, entry);
    lane.push(entry);
    if (lane.isHead(entry)) this.#directory.noteHead(lane, entry.rank, nowMs);
    if (wasEmpty) this.#directory.noteLane(lane);
    if (wasIdle) this.#directory.noteQueue(queue);
    return 'accepted';
  }

  /** What waits for an entry that was short is looked at again: its tokens are there. */
  #catchUp(nowMs: number): void {
    for (let due = this.#reviews.peek(); due !== undefined && due.atMs <= nowMs;) {
      this.#reviews.remove(due);
      reopenParked(due.queue, nowMs);
      due = this.#reviews.peek();
    }
  }

  #sources(request: TakeRequest, nowMs: number) {
    const { groups, areAll } = this.#directory.groupsFor(request);
    if (request.queues === null) {
      for (const group of groups) group.catchUp(nowMs);
      return { sources: groups, areAll };
    }
    const sources: LaneSource[] = [];
    for (const name of new Set(request.queues)) {
      const queue = this.#directory.findQueue(name);
      if (queue === null) continue;
      for (const lane of this.#directory.lanesFor(queue, groups)) sources.push(new NamedLane(lane));
    }
    return { sources, areAll };
  }

  #takeFrom(walk: Walk, count: number, nowMs: number): Taken[] {
    const takeId = `${this.#generation % grantGenerations}.${this.#takes}`;
    this.#takes += 1;
    const taken: Taken[] = [];
    while (taken.length < count) {
      const entry = walk.next();
      if (entry === null) break;
      const { queue } = entry.lane;
      queue.turn = this.#nextTurn();
      queue.slotsInUse += 1;
      queue.spend(entry, takeId, nowMs);
      this.#out.add(entry, queue, takeId, nowMs);
      this.#leaveLane(entry, nowMs);
      taken.push(takenFrom(entry, takeId, nowMs));
    }
    return taken;
  }

  /** True: it was short, and held up others that wait in its queue. */
  #leaveLane(entry: ReadyEntry, nowMs: number): boolean {
    const { taskId, lane } = entry;
    const { queue } = lane;
    this.#waiting.delete(taskId);
    const wasHead = lane.isHead(entry);
    lane.remove(entry);
    if (wasHead) this.#directory.noteHead(lane, entry.rank, nowMs);
    if (lane.size === 0) this.#directory.noteLane(lane);
    if (queue.short !== entry) return false;
    queue.short = null;
    reopenParked(queue, nowMs);
    return true;
  }

  /** What was parked before an entry was found short may wait for that one now, and no longer. */
  #settleShort({ foundShort, obstructed }: Walk, nowMs: number): void {
    for (const lanes of foundShort.values()) {
      for (const lane of lanes) lane.group.reopen(lane, nowMs);
    }
    for (const queue of obstructed) {
      if (queue.short === null) continue;
      queue.review.atMs = queue.tokensAt(queue.short, nowMs);
      if (queue.review.place < 0) this.#reviews.push(queue.review);
      else this.#reviews.update(queue.review);
    }
  }

  #findTaken(grants: readonly Grant[]): OutEntry[] {
    const entries: OutEntry[] = [];
    for (const grant of grants) {
      const entry = this.#out.find(grant);
      if (entry?.confirmed === false) entries.push(entry);
    }
    return entries;
  }

  /** False: it was released already. */
  #release(entry: OutEntry, openings: Openings): boolean {
    if (!this.#out.delete(entry)) return false;
    openings.freeSlot(entry);
    if (entry.queue.isIdle) this.#directory.noteQueue(entry.queue);
    return true;
  }

  #open({ changed, opened, raisedShared, nowMs }: Openings): void {
    for (const queue of [...changed, ...opened]) reopenParked(queue, nowMs);
    for (const queue of opened) this.#wakeFor(queue, nowMs);
    this.#wakeSharing(raisedShared);
  }

  #wakeFor(queue: Queue, nowMs: number): void {
    const count = wakesOnOpening(queue, nowMs);
    if (count === 0) return;
    this.#wake({ lanes: lanesToWake(queue), count });
  }

  /** One waiter for each group: whoever takes says what is left. */
  #wakeSharing(limits: Iterable<string>): void {
    const groups = new Set([...limits].flatMap((name) => [...this.#directory.groupsSharing(name)]));
    if (groups.size > lanesWoken) {
      this.#wake({ lanes: [anyLaneOf('')], count: 1 });
      return;
    }
    for (const { anyLane } of groups) {
      if (anyLane instanceof ReadyLane) this.#wake({ lanes: [anyLane.lane], count: 1 });
    }
  }

  /** Null: the version is not newer than the one held. */
  #configure(configured: ConfiguredQueue, nowMs: number): Queue | null {
    const queue = this.#directory.ensureQueue(configured.name);
    const { sharedKey } = queue;
    const { ageing } = queue.settings;
    const limits = { buckets: this.#buckets, shared: this.#shared };
    const present = { nowMs, lastOut: this.#out.last };
    if (!configureQueue(queue, configured, limits, present)) return null;
    if (queue.sharedKey !== sharedKey) this.#directory.regroup(queue, nowMs);
    else if (!agesAlike(queue.settings.ageing, ageing)) this.#directory.reopenAll(queue, nowMs);
    else reopenParked(queue, nowMs);
    this.#directory.noteQueue(queue);
    return queue;
  }

  #restoreRunning({ taskId, queue: name, grant }: Running, nowMs: number): void {
    if (this.#out.has(taskId)) return;
    const queue = this.#directory.ensureQueue(name);
    this.#out.add({ taskId, cost: {} }, queue, grant, nowMs).confirmed = true;
    queue.slotsInUse += 1;
    queue.running += 1;
    this.#directory.noteQueue(queue);
  }

  #nextTurn(): number {
    this.#turns += 1;
    return this.#turns;
  }

  #wake(wake: Wake): void {
    for (const listener of this.#listeners) listener(wake);
  }
}

/** What offers did, gathered over one call: wake-ups are told last. */
class Changes {
  readonly accepted = new Map<ReadyLane, number>();
  /** Queues that lost the entry they were short of. */
  readonly unblocked = new Set<Queue>();
  readonly nowMs: number;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }
}

/** A position in a queue of more lanes than this is a lower bound. */
const lanesCounted = 250;

/** Steps of a survey without a pause: 1 to 2 ms. */
const surveyStepsAtOnce = 5_000;
/** More lanes than this are not named: whoever could take from the queue is woken. */
const lanesWoken = 100;
const lanesSearched = 1_000;
/** When not all that a worker can do was looked at. */
const lookAgainMs = 200;
const never = Number.POSITIVE_INFINITY;

/** After every instant: it is not in line. */
const noPlace = Number.POSITIVE_INFINITY;

/** Nothing is fed into it. */
const closedLook: WindowLook = { room: 0, left: null };

function hasRoom(lane: ReadyLane, rank: PriorityRank): boolean {
  return lane.sizeOf(rank) < lane.queue.settings.maxReady;
}

function positionOf({ orderedAt, seq }: ReadyEntry): Position {
  return { eligibleAtMs: orderedAt, seq };
}

/**
 * One at least when it opens by itself later: who waits has to learn the new wait. Also one where
 * there are limits: who takes learns what the next take would find.
 */
function wakesOnOpening(queue: Queue, nowMs: number): number {
  const opensAt = queue.opensAt(nowMs);
  if (opensAt === Number.POSITIVE_INFINITY) return 0;
  const places = opensAt > nowMs || queue.hasLimits ? 1 : queue.places;
  return Math.min(queue.waiting, places);
}

function reopenParked(queue: Queue, nowMs: number): void {
  for (const lane of queue.parked) lane.group.reopen(lane, nowMs);
}

function lanesToWake(queue: Queue): readonly Lane[] {
  const lanes = queue.lanes(lanesSearched);
  const holding = lanes.filter(({ size }) => size > 0);
  const areMany = holding.length > lanesWoken || lanes.length === lanesSearched;
  return areMany ? [anyLaneOf(queue.name)] : holding.map(({ lane }) => lane);
}

function agesAlike(a: Ageing, b: Ageing): boolean {
  return (
    a.lowToMediumMs === b.lowToMediumMs &&
    a.lowToHighMs === b.lowToHighMs &&
    a.mediumToHighMs === b.mediumToHighMs
  );
}

function waitUntil(opensAt: number, nowMs: number): number | null {
  return opensAt < Number.POSITIVE_INFINITY ? opensAt - nowMs : null;
}

function takenFrom(entry: ReadyEntry, grant: string, nowMs: number): Taken {
  return {
    taskId: entry.taskId,
    grant,
    lane: entry.lane.lane,
    priority: priorityOf(entry.rank),
    effectivePriority: priorityOf(levelOf(entry, nowMs)),
  };
}

function isEarlier(a: Review<Queue>, b: Review<Queue>): boolean {
  return a.atMs < b.atMs;
}

function isSameLane(a: Lane, b: Lane): boolean {
  if (a === b) return true;
  return (
    a.queue === b.queue &&
    a.taskType === b.taskType &&
    a.capabilities.length === b.capabilities.length &&
    a.capabilities.every((capability, index) => capability === b.capabilities[index])
  );
}
