import type { TaskId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import { priorityOf, rankOf } from '../domain/priority.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import type { Clock } from '../runtime/clock.js';
import { Candidates, NamedLane, type LaneSource } from './candidates.js';
import { LaneDirectory } from './lane-directory.js';
import { liveQueue } from './live-queue.js';
import type { QueueState } from './queue-state.js';
import { levelOf, type ReadyEntry, type ReadyLane } from './ready-lane.js';
import type {
  ConfiguredQueue,
  Finished,
  Grant,
  LiveQueue,
  Offer,
  OfferAnswer,
  OfferOutcome,
  ReadyQueue,
  ReadyState,
  TakeAnswer,
  Taken,
  TakeRequest,
  Wake,
  Window,
} from './ready-queue.js';
import { SteadyClock } from './steady-clock.js';

type Queue = QueueState<ReadyLane>;

/**
 * The ready queue of one process. Every operation runs to its end without waiting, so each is
 * atomic; wake-ups are told last, when a listener may call back in.
 */
export class MemoryReadyQueue implements ReadyQueue {
  readonly #clock: SteadyClock;
  readonly #directory = new LaneDirectory();
  /** Waiting, taken and running. */
  readonly #entries = new Map<TaskId, ReadyEntry>();
  readonly #listeners = new Set<(wake: Wake) => void>();
  #isOpen = false;
  #turns = 0;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = new SteadyClock(clock);
  }

  /** How much is held and remembered. */
  get sizes(): LaneDirectory['sizes'] & { readonly entries: number } {
    return { entries: this.#entries.size, ...this.#directory.sizes };
  }

  async restore({ queues, running }: ReadyState): Promise<void> {
    this.#empty();
    for (const configured of queues) this.#configure(configured);
    for (const { taskId, queue: name } of running) {
      if (this.#entries.has(taskId)) continue;
      const queue = this.#directory.ensureQueue(name);
      this.#entries.set(taskId, runningEntry(taskId, queue));
      queue.slotsInUse += 1;
      queue.running += 1;
      this.#directory.noteQueue(queue);
    }
    this.#isOpen = true;
  }

  async offer(offers: readonly Offer[]): Promise<OfferAnswer> {
    if (!this.#isOpen) return { kind: 'rebuild' };
    const nowMs = this.#clock.nowMs();
    const accepted = new Map<ReadyLane, number>();
    let lane: ReadyLane | null = null;
    const outcomes: OfferOutcome[] = [];
    for (const offer of offers) {
      // Batches come lane by lane, as a rule: most lookups are saved.
      if (lane === null || !isSameLane(lane.lane, offer.lane)) {
        lane = this.#directory.findLane(offer.lane);
      }
      const outcome = this.#judge(offer, lane);
      if (outcome === 'accepted') {
        lane ??= this.#directory.ensureLane(offer.lane);
        this.#accept(offer, lane, nowMs);
        accepted.set(lane, (accepted.get(lane) ?? 0) + 1);
      }
      outcomes.push(outcome);
    }
    for (const [{ lane }, count] of accepted) this.#wake({ lanes: [lane], count });
    return { kind: 'offered', outcomes };
  }

  async take(request: TakeRequest): Promise<TakeAnswer> {
    if (request.count < 1) throw new RangeError('a take asks for one entry at least');
    if (!this.#isOpen) return { kind: 'rebuild' };
    const nowMs = this.#clock.nowMs();
    const candidates = new Candidates(this.#sources(request), nowMs);
    const entries: Taken[] = [];
    let entry = candidates.next();
    while (entry !== null && entries.length < request.count) {
      entries.push(this.#take(entry, nowMs));
      entry = candidates.next();
    }
    if (entries.length > 0) return { kind: 'taken', entries, next: entry?.waitsIn?.lane ?? null };
    const opensAt = candidates.opensAt();
    return { kind: 'wait', waitMs: opensAt < Number.POSITIVE_INFINITY ? opensAt - nowMs : null };
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
    this.#release(this.#findTaken(grants));
  }

  async finish(finished: readonly Finished[]): Promise<void> {
    const entries: ReadyEntry[] = [];
    for (const { taskId } of finished) {
      const entry = this.#entries.get(taskId);
      if (entry?.waitsIn === null) entries.push(entry);
    }
    this.#release(entries);
  }

  async remove(taskIds: readonly TaskId[]): Promise<void> {
    const nowMs = this.#clock.nowMs();
    for (const taskId of taskIds) {
      const entry = this.#entries.get(taskId);
      if (!entry?.waitsIn) continue;
      this.#entries.delete(taskId);
      this.#leaveLane(entry, entry.waitsIn, nowMs);
      this.#directory.noteQueue(entry.queue);
    }
  }

  async configure(queues: readonly ConfiguredQueue[]): Promise<void> {
    const nowMs = this.#clock.nowMs();
    const changed: Queue[] = [];
    for (const configured of queues) {
      const queue = this.#configure(configured);
      if (queue === null || queue.waiting === 0) continue;
      for (const lane of queue.lanes.values()) lane.group.reopen(lane, nowMs);
      changed.push(queue);
    }
    for (const queue of changed) this.#wakeFor(queue, nowMs);
  }

  async room(windows: readonly Window[]): Promise<readonly number[]> {
    return windows.map(({ lane, priority }) => {
      const settings = this.#directory.findQueue(lane.queue)?.settings ?? defaultQueueSettings;
      const size = this.#directory.findLane(lane)?.sizeOf(rankOf(priority)) ?? 0;
      return Math.max(0, settings.maxReady - size);
    });
  }

  async missing(taskIds: readonly TaskId[]): Promise<readonly TaskId[]> {
    return taskIds.filter((taskId) => !this.#entries.has(taskId));
  }

  async live(name: string): Promise<LiveQueue> {
    return liveQueue(this.#directory.findQueue(name), this.#clock.nowMs());
  }

  async position(taskId: TaskId, limit: number): Promise<number | null> {
    const entry = this.#entries.get(taskId);
    if (!entry?.waitsIn) return null;
    const nowMs = this.#clock.nowMs();
    let count = 0;
    for (const lane of entry.queue.lanes.values()) {
      count += lane.countBefore(entry, nowMs, limit - count);
    }
    return count;
  }

  onWake(listener: (wake: Wake) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#empty();
  }

  #empty(): void {
    this.#isOpen = false;
    this.#entries.clear();
    this.#directory.clear();
  }

  #judge({ taskId, lane, priority }: Offer, known: ReadyLane | null): OfferOutcome {
    if (this.#entries.has(taskId)) return 'held';
    const queue = known?.queue ?? this.#directory.findQueue(lane.queue);
    const { maxReady } = queue?.settings ?? defaultQueueSettings;
    return (known?.sizeOf(rankOf(priority)) ?? 0) < maxReady ? 'accepted' : 'full';
  }

  #accept(offer: Offer, lane: ReadyLane, nowMs: number): void {
    const { taskId, priority, ageMs, eligibleAtMs, seq } = offer;
    const { queue, group } = lane;
    const wasIdle = queue.isIdle;
    const wasEmpty = lane.size === 0;
    // New queues stand at the end of the line: before it, an endless stream of them would keep
    // those that wait from ever having another turn.
    if (queue.turn === 0) queue.turn = this.#nextTurn();
    const entry: ReadyEntry = {
      place: -1,
      taskId,
      queue,
      waitsIn: lane,
      grant: '',
      confirmed: false,
      rank: rankOf(priority),
      eligibleAt: nowMs - Math.round(ageMs),
      orderedAt: eligibleAtMs,
      seq,
    };
    this.#entries.set(taskId, entry);
    lane.push(entry);
    if (lane.isHead(entry)) group.settle(lane, nowMs);
    if (wasEmpty) this.#directory.noteLane(lane);
    if (wasIdle) this.#directory.noteQueue(queue);
  }

  #sources(request: TakeRequest): LaneSource[] {
    const groups = this.#directory.groupsFor(request);
    if (request.queues === null) return groups;
    const sources: LaneSource[] = [];
    for (const name of new Set(request.queues)) {
      const queue = this.#directory.findQueue(name);
      if (queue === null) continue;
      for (const group of groups) {
        const lane = queue.lanes.get(group);
        if (lane !== undefined) sources.push(new NamedLane(lane));
      }
    }
    return sources;
  }

  #take(entry: ReadyEntry, nowMs: number): Taken {
    const { taskId, queue, rank, waitsIn: lane } = entry;
    if (lane === null) throw new Error(`task ${taskId} is taken already`);
    queue.turn = this.#nextTurn();
    queue.slotsInUse += 1;
    entry.grant = String(queue.turn);
    this.#leaveLane(entry, lane, nowMs);
    return {
      taskId,
      grant: entry.grant,
      lane: lane.lane,
      priority: priorityOf(rank),
      effectivePriority: priorityOf(levelOf(entry, nowMs)),
    };
  }

  #leaveLane(entry: ReadyEntry, lane: ReadyLane, nowMs: number): void {
    const wasHead = lane.isHead(entry);
    lane.remove(entry);
    if (wasHead) lane.group.settle(lane, nowMs);
    if (lane.size === 0) this.#directory.noteLane(lane);
  }

  #findTaken(grants: readonly Grant[]): ReadyEntry[] {
    const entries: ReadyEntry[] = [];
    for (const { taskId, grant } of grants) {
      const entry = this.#entries.get(taskId);
      if (entry?.waitsIn === null && entry.grant === grant && !entry.confirmed) entries.push(entry);
    }
    return entries;
  }

  #release(entries: readonly ReadyEntry[]): void {
    const nowMs = this.#clock.nowMs();
    const wereFull = new Set<Queue>();
    for (const entry of entries) {
      // The same id twice in a call frees one slot.
      if (!this.#entries.delete(entry.taskId)) continue;
      const { queue } = entry;
      if (queue.freeSlots <= 0) wereFull.add(queue);
      queue.slotsInUse -= 1;
      if (entry.confirmed) queue.running -= 1;
      if (queue.isIdle) this.#directory.noteQueue(queue);
    }
    for (const queue of wereFull) {
      if (queue.freeSlots <= 0) continue;
      for (const lane of queue.parked) lane.group.reopen(lane, nowMs);
    }
    for (const queue of wereFull) this.#wakeFor(queue, nowMs);
  }

  #wakeFor(queue: Queue, nowMs: number): void {
    const count = wakesOnOpening(queue, nowMs);
    if (count === 0) return;
    const holding = [...queue.lanes.values()].filter(({ size }) => size > 0);
    this.#wake({ lanes: holding.map(({ lane }) => lane), count });
  }

  /** Null: the version is not newer than the one held. */
  #configure({ name, version, settings }: ConfiguredQueue): Queue | null {
    const queue = this.#directory.ensureQueue(name);
    if (queue.version !== null && version <= queue.version) return null;
    const { pausedUntil } = settings;
    const pausedUntilMs = pausedUntil === null ? null : this.#clock.instantMs(pausedUntil);
    queue.configure(version, settings, pausedUntilMs);
    this.#directory.noteQueue(queue);
    return queue;
  }

  #nextTurn(): number {
    this.#turns += 1;
    return this.#turns;
  }

  #wake(wake: Wake): void {
    for (const listener of this.#listeners) listener(wake);
  }
}

/** One at least when it opens by itself later: who waits has to learn the new wait. */
function wakesOnOpening(queue: Queue, nowMs: number): number {
  const opensAt = queue.opensAt(nowMs);
  if (opensAt <= nowMs) return Math.min(queue.waiting, queue.freeSlots);
  return opensAt < Number.POSITIVE_INFINITY ? Math.min(queue.waiting, 1) : 0;
}

function runningEntry(taskId: TaskId, queue: Queue): ReadyEntry {
  const unordered = { place: -1, rank: 0, eligibleAt: 0, orderedAt: 0, seq: 0 } as const;
  return { ...unordered, taskId, queue, waitsIn: null, grant: '', confirmed: true };
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
