import type { TaskId } from '../domain/ids.js';
import { laneKey, type Lane } from '../domain/lane.js';
import { effectivePriority, rankOf, type Priority } from '../domain/priority.js';
import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
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

interface Task {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly lane: Lane;
  readonly priority: Priority;
  readonly eligibleAt: number;
  readonly orderedAt: number;
  readonly seq: number;
  state: 'waiting' | 'taken' | 'running';
  grant: string;
}

interface Queue {
  version: number;
  settings: QueueSettings;
  turn: number;
}

/**
 * What a ready queue must answer, as plainly as it can be said: everything in one list, sorted
 * anew for every task that is taken. Shares nothing with what it is compared to but the domain.
 */
export class ReferenceReadyQueue implements ReadyQueue {
  readonly #nowMs: () => number;
  #tasks: Task[] = [];
  #queues = new Map<string, Queue>();
  #turns = 0;
  #isOpen = false;
  #listener: (wake: Wake) => void = () => undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  async restore({ queues, running }: ReadyState): Promise<void> {
    this.#isOpen = true;
    this.#queues = new Map();
    for (const configured of queues) this.#configure(configured);
    this.#tasks = [];
    for (const { taskId, queue } of running) {
      if (this.#find(taskId) !== undefined) continue;
      const lane = { queue, taskType: 'unknown', capabilities: [] };
      const order = { eligibleAt: 0, orderedAt: 0, seq: 0 };
      const task = { taskId, queue, lane, priority: 'low', ...order } as const;
      this.#tasks.push({ ...task, state: 'running', grant: '' });
    }
  }

  async offer(offers: readonly Offer[]): Promise<OfferAnswer> {
    if (!this.#isOpen) return { kind: 'rebuild' };
    const wakes = new Map<string, { lane: Lane; count: number }>();
    const outcomes = offers.map((offer): OfferOutcome => {
      const { taskId, lane, priority, ageMs, eligibleAtMs, seq } = offer;
      if (this.#find(taskId) !== undefined) return 'held';
      if (this.#roomOf(offer) <= 0) return 'full';
      const eligibleAt = this.#nowMs() - ageMs;
      const order = { orderedAt: eligibleAtMs, seq };
      const task = { taskId, queue: lane.queue, lane, priority, eligibleAt, ...order } as const;
      this.#tasks.push({ ...task, state: 'waiting', grant: '' });
      const queue = this.#queue(lane.queue);
      if (queue.turn === 0) queue.turn = ++this.#turns;
      const wake = wakes.get(laneKey(lane)) ?? { lane, count: 0 };
      wakes.set(laneKey(lane), { lane, count: wake.count + 1 });
      return 'accepted';
    });
    for (const { lane, count } of wakes.values()) this.#listener({ lanes: [lane], count });
    return { kind: 'offered', outcomes };
  }

  async take(request: TakeRequest): Promise<TakeAnswer> {
    if (!this.#isOpen) return { kind: 'rebuild' };
    const entries: Taken[] = [];
    let next = this.#next(request);
    while (next !== undefined && entries.length < request.count) {
      const { taskId, lane, priority } = next;
      this.#queue(next.queue).turn = ++this.#turns;
      next.state = 'taken';
      next.grant = String(this.#turns);
      const effectivePriority = this.#effective(next);
      entries.push({ taskId, grant: next.grant, lane, priority, effectivePriority });
      next = this.#next(request);
    }
    if (entries.length > 0) return { kind: 'taken', entries, next: next?.lane ?? null };
    const waits = this.#matching(request).map((task) => this.#opensInMs(task.queue));
    const waitMs = Math.min(Number.POSITIVE_INFINITY, ...waits);
    return { kind: 'wait', waitMs: Number.isFinite(waitMs) ? waitMs : null };
  }

  async confirm(grants: readonly Grant[]): Promise<void> {
    for (const { taskId, grant } of grants) {
      const task = this.#find(taskId);
      if (task?.state === 'taken' && task.grant === grant) task.state = 'running';
    }
  }

  async refund(grants: readonly Grant[]): Promise<void> {
    const good = grants.filter(({ taskId, grant }) => this.#find(taskId)?.grant === grant);
    this.#free(
      good.map(({ taskId }) => taskId),
      ['taken'],
    );
  }

  async finish(finished: readonly Finished[]): Promise<void> {
    const taskIds = finished.map(({ taskId }) => taskId);
    this.#free(taskIds, ['taken', 'running']);
  }

  async remove(taskIds: readonly TaskId[]): Promise<void> {
    this.#tasks = this.#tasks.filter(
      ({ taskId, state }) => state !== 'waiting' || !taskIds.includes(taskId),
    );
  }

  async configure(queues: readonly ConfiguredQueue[]): Promise<void> {
    const changed = queues.filter((configured) => this.#configure(configured));
    this.#wakeFor(changed.map(({ name }) => name));
  }

  async room(windows: readonly Window[]): Promise<readonly number[]> {
    return windows.map((window) => Math.max(0, this.#roomOf(window)));
  }

  async missing(taskIds: readonly TaskId[]): Promise<readonly TaskId[]> {
    return taskIds.filter((taskId) => this.#find(taskId) === undefined);
  }

  async live(queue: string): Promise<LiveQueue> {
    const waiting = this.#waitingIn(queue);
    const ages = waiting.map(({ eligibleAt }) => this.#nowMs() - eligibleAt);
    return {
      depth: countBy(waiting.map(({ priority }) => priority)),
      effectiveDepth: countBy(waiting.map((task) => this.#effective(task))),
      running: this.#tasks.filter((task) => task.queue === queue && task.state === 'running')
        .length,
      oldestAgeMs: ages.length === 0 ? null : Math.max(...ages),
      tokens: {},
      nextTokenInMs: null,
    };
  }

  async position(taskId: TaskId, limit: number): Promise<number | null> {
    const task = this.#find(taskId);
    if (task?.state !== 'waiting') return null;
    const line = this.#waitingIn(task.queue).sort((a, b) => this.#compare(a, b));
    return Math.min(line.indexOf(task), limit);
  }

  onWake(listener: (wake: Wake) => void): () => void {
    this.#listener = listener;
    return () => undefined;
  }

  async close(): Promise<void> {
    this.#isOpen = false;
  }

  #find(taskId: TaskId): Task | undefined {
    return this.#tasks.find((task) => task.taskId === taskId);
  }

  #queue(name: string): Queue {
    const queue = this.#queues.get(name) ?? {
      version: Number.NEGATIVE_INFINITY,
      settings: defaultQueueSettings,
      turn: 0,
    };
    this.#queues.set(name, queue);
    return queue;
  }

  #configure({ name, version, settings }: ConfiguredQueue): boolean {
    const queue = this.#queue(name);
    if (version <= queue.version) return false;
    Object.assign(queue, { version, settings });
    return true;
  }

  #waitingIn(queue: string): Task[] {
    return this.#tasks.filter((task) => task.queue === queue && task.state === 'waiting');
  }

  #matching({ taskTypes, capabilities, queues }: TakeRequest): Task[] {
    return this.#tasks.filter(
      ({ state, lane }) =>
        state === 'waiting' &&
        (taskTypes === null || taskTypes.includes(lane.taskType)) &&
        (queues === null || queues.includes(lane.queue)) &&
        lane.capabilities.every((capability) => capabilities.includes(capability)),
    );
  }

  #next(request: TakeRequest): Task | undefined {
    return this.#matching(request)
      .filter((task) => this.#opensInMs(task.queue) <= 0)
      .sort((a, b) => this.#compare(a, b))[0];
  }

  #compare(a: Task, b: Task): number {
    return (
      rankOf(this.#effective(a)) - rankOf(this.#effective(b)) ||
      this.#queue(a.queue).turn - this.#queue(b.queue).turn ||
      a.orderedAt - b.orderedAt ||
      a.seq - b.seq
    );
  }

  #effective({ queue, priority, eligibleAt }: Task): Priority {
    const { ageing } = this.#queue(queue).settings;
    return effectivePriority(priority, this.#nowMs() - eligibleAt, ageing);
  }

  #freeSlots(name: string): number {
    const inUse = this.#tasks.filter((task) => task.queue === name && task.state !== 'waiting');
    return (this.#queue(name).settings.maxConcurrency ?? Number.POSITIVE_INFINITY) - inUse.length;
  }

  #opensInMs(name: string): number {
    const { paused, pausedUntil } = this.#queue(name).settings;
    if (this.#freeSlots(name) <= 0 || (paused && pausedUntil === null)) {
      return Number.POSITIVE_INFINITY;
    }
    return paused && pausedUntil !== null ? Math.max(0, pausedUntil.getTime() - this.#nowMs()) : 0;
  }

  #roomOf({ lane, priority }: Window): number {
    const held = this.#waitingIn(lane.queue).filter(
      (task) => task.priority === priority && laneKey(task.lane) === laneKey(lane),
    );
    return this.#queue(lane.queue).settings.maxReady - held.length;
  }

  #free(taskIds: readonly TaskId[], states: readonly Task['state'][]): void {
    const full = [...this.#queues.keys()].filter((name) => this.#freeSlots(name) <= 0);
    this.#tasks = this.#tasks.filter(
      ({ taskId, state }) => !taskIds.includes(taskId) || !states.includes(state),
    );
    this.#wakeFor(full.filter((name) => this.#freeSlots(name) > 0));
  }

  #wakeFor(names: readonly string[]): void {
    for (const name of names) {
      const waiting = this.#waitingIn(name);
      const opensInMs = this.#opensInMs(name);
      const places = opensInMs <= 0 ? this.#freeSlots(name) : Number.isFinite(opensInMs) ? 1 : 0;
      const lanes = new Map(waiting.map(({ lane }) => [laneKey(lane), lane]));
      const count = Math.min(waiting.length, places);
      if (count > 0) this.#listener({ lanes: [...lanes.values()], count });
    }
  }
}

function countBy(found: readonly Priority[]): Record<Priority, number> {
  const counts = { high: 0, medium: 0, low: 0 };
  for (const priority of found) counts[priority] += 1;
  return counts;
}
