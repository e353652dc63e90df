import type { TaskId } from '../domain/ids.js';
import { everyType, laneKey, type Lane } from '../domain/lane.js';
import { effectivePriority, rankOf, type Priority } from '../domain/priority.js';
import {
  defaultQueueSettings,
  type Cost,
  type QueueSettings,
  type RateLimit,
} from '../domain/queue-settings.js';
import { ownBucket, sharedBucket } from '../domain/token-bucket.js';
import { ReferenceBucket } from './reference-bucket.contract.js';
import type {
  BucketLevel,
  Configuration,
  Configured,
  ConfiguredLimit,
  ConfiguredQueue,
  Finished,
  Grant,
  HeldBackBy,
  LiveQueue,
  Newcomer,
  NoteAge,
  Offer,
  OfferAnswer,
  OfferOutcome,
  OutStretch,
  Place,
  Position,
  ReadyQueue,
  ReadyState,
  Stretch,
  SurveyedQueue,
  TakeAnswer,
  Taken,
  TakeRequest,
  Wake,
  Window,
  WindowLook,
} from './ready-queue.js';

interface Task {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly lane: Lane;
  readonly priority: Priority;
  readonly eligibleAt: number;
  readonly orderedAt: number;
  readonly seq: number;
  readonly cost: Cost;
  state: 'waiting' | 'taken' | 'running';
  grant: string;
  outSince: number;
  /** The version of its queue when it was taken, and that of its list of limits. */
  takenUnder: number | null;
  paidUnder: number | null;
}

interface Queue {
  version: number;
  /** When its list of limits changed. */
  limitsVersion: number;
  settings: QueueSettings;
  pausedUntil: number;
  probesLeft: number;
  turn: number;
  short: Task | null;
}

/** Of a window that is behind. */
interface Line {
  readonly window: Window;
  from: Position;
  leftSince: Position[];
  round: number;
}

/** Where a walk over the candidates ended. */
interface Walk {
  readonly next: Task | undefined;
  readonly opensAt: number;
  readonly opensAtLeastAt: number;
}

const never = Number.POSITIVE_INFINITY;

/**
 * What a ready queue must answer, as plainly as it can be said: everything in one list, sorted
 * anew for every task that is taken. Shares nothing with what it is compared to but the domain.
 */
export class ReferenceReadyQueue implements ReadyQueue {
  /**
   * Of the last take: a wait may be shorter than it was answered, down to this, where a queue opens
   * by its own conditions and stands behind one that waits for a limit that both share.
   */
  shortestWaitMs: number | null = null;
  readonly #nowMs: () => number;
  #generation = 0;
  #tasks: Task[] = [];
  #lines: Line[] = [];
  #pushedOut: Task[] = [];
  #rounds = 0;
  #queues = new Map<string, Queue>();
  #limits = new Map<string, ConfiguredLimit>();
  #buckets = new Map<string, ReferenceBucket>();
  #turns = 0;
  #takes = 0;
  #announcements = 0;
  #isOpen = false;
  #listener: (wake: Wake) => number = () => 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  async beginRestore(): Promise<'yours'> {
    this.#isOpen = false;
    return 'yours';
  }

  async restore(state: ReadyState): Promise<boolean> {
    const { generation, levels, running, behind, ...configuration } = state;
    this.#isOpen = true;
    this.#generation = generation;
    this.#tasks = [];
    this.#lines = [];
    for (const window of behind) this.#leave({ ...window, eligibleAtMs: -never, seq: 0 });
    this.#queues = new Map();
    this.#limits = new Map();
    this.#buckets = new Map();
    this.#configureAll(configuration);
    for (const { bucket, tokens } of levels) this.#buckets.get(bucket)?.restore(tokens);
    for (const { taskId, queue, grant } of running) {
      if (this.#find(taskId) !== undefined) continue;
      const lane = { queue, taskType: 'unknown', capabilities: [] };
      const order = { eligibleAt: 0, orderedAt: 0, seq: 0, outSince: this.#nowMs() };
      const task = { taskId, queue, lane, priority: 'low', cost: {}, ...order } as const;
      this.#tasks.push({ ...task, state: 'running', grant, takenUnder: null, paidUnder: null });
    }
    return true;
  }

  async offer(offers: readonly Offer[]): Promise<OfferAnswer> {
    if (!this.#isOpen) return { kind: 'rebuild' };
    const outcomes = offers.map((offer) => this.#offer(offer));
    return this.#tell(offers, outcomes);
  }

  async announce(newcomers: readonly Newcomer[]): Promise<readonly TaskId[]> {
    if (!this.#isOpen) return [];
    const outcomes = newcomers.map((newcomer): OfferOutcome => {
      const waiting = this.#waitingOf(newcomer);
      const isHeldUp = waiting.length > 0 && waiting.every(({ orderedAt }) => orderedAt < never);
      if (isHeldUp || this.#lineOf(newcomer) !== null) return 'left';
      if (this.#roomOf(newcomer) <= 0) return 'left';
      const last = { ageMs: 0, eligibleAtMs: never, seq: ++this.#announcements };
      return this.#accept({ ...newcomer, ...last });
    });
    this.#tell(newcomers, outcomes);
    return newcomers.flatMap(({ taskId }, n) => (outcomes[n] === 'accepted' ? [taskId] : []));
  }

  async feed(stretches: readonly Stretch[]): Promise<OfferAnswer> {
    if (!this.#isOpen) return { kind: 'rebuild' };
    const outcomes = stretches.flatMap((stretch) => this.#feed(stretch));
    return this.#tell(
      stretches.flatMap(({ offers }) => offers),
      outcomes,
    );
  }

  async leave(places: readonly Place[]): Promise<boolean> {
    if (this.#isOpen) for (const place of places) this.#leave(place);
    return this.#isOpen;
  }

  async look(windows: readonly Window[]): Promise<readonly WindowLook[]> {
    return windows.map((window) => {
      const line = this.#lineOf(window);
      const room = Math.max(0, this.#roomOf(window));
      return { room, left: line === null ? null : { from: line.from, round: line.round } };
    });
  }

  async beginFeed(windows: readonly Window[]): Promise<readonly WindowLook[]> {
    for (const window of windows) {
      const line = this.#lineOf(window);
      if (line !== null) Object.assign(line, { leftSince: [], round: ++this.#rounds });
    }
    return this.look(windows);
  }

  async listBehind(): Promise<readonly Window[]> {
    return this.#lines.map(({ window }) => window);
  }

  async take(request: TakeRequest): Promise<TakeAnswer> {
    if (!this.#isOpen) return { kind: 'rebuild' };
    const grant = `${this.#generation}.${++this.#takes}`;
    const entries: Taken[] = [];
    let walk = this.#walk(request);
    while (walk.next !== undefined && entries.length < request.count) {
      entries.push(this.#grant(walk.next, grant));
      walk = this.#walk(request);
    }
    const { next } = walk;
    const waitMs = next === undefined ? this.#waitUntil(walk.opensAt) : 0;
    this.shortestWaitMs = next === undefined ? this.#waitUntil(walk.opensAtLeastAt) : 0;
    if (entries.length === 0) return { kind: 'wait', waitMs };
    const generation = this.#generation;
    return { kind: 'taken', generation, entries, next: next?.lane ?? null, waitMs };
  }

  async confirm(grants: readonly Grant[]): Promise<void> {
    for (const { taskId, grant } of grants) {
      const task = this.#find(taskId);
      if (task?.state === 'taken' && task.grant === grant) task.state = 'running';
    }
  }

  async refund(grants: readonly Grant[]): Promise<void> {
    const refunded = this.#tasks.filter(
      ({ taskId, state, grant }) =>
        state === 'taken' && grants.some((one) => one.taskId === taskId && one.grant === grant),
    );
    this.#release(refunded, () => {
      for (const { queue: name, cost, grant, takenUnder, paidUnder } of refunded) {
        const queue = this.#queue(name);
        const paid = paidUnder === queue.limitsVersion ? this.#bucketsOf(name) : [];
        for (const bucket of paid) bucket.refund(cost, grant);
        if (takenUnder === queue.version) queue.probesLeft += 1;
      }
    });
  }

  async finish(finished: readonly Finished[]): Promise<void> {
    const ended: Task[] = [];
    const settlements = finished.map(({ taskId, grant, ...settlement }) => {
      const task = this.#find(taskId);
      const isOut = task !== undefined && task.state !== 'waiting' && !ended.includes(task);
      const isEnded = isOut && grant === task.grant;
      if (isEnded) ended.push(task);
      return { ...settlement, isEnded };
    });
    this.#release(ended, () => {
      for (const { queue, reserved, usage, isEnded } of settlements) {
        if (usage === null) continue;
        for (const bucket of this.#bucketsOf(queue)) bucket.settle(reserved, usage, isEnded);
      }
    });
  }

  async remove(taskIds: readonly TaskId[]): Promise<void> {
    const stuck = [...this.#queues].filter(([, { short }]) => {
      const isRemoved = short?.state === 'waiting' && taskIds.includes(short.taskId);
      return isRemoved && this.#tasks.includes(short);
    });
    this.#tasks = this.#tasks.filter(
      ({ taskId, state }) => state !== 'waiting' || !taskIds.includes(taskId),
    );
    this.#wakeFor(stuck.map(([name]) => name));
  }

  async configure(change: Configuration): Promise<Configured> {
    this.#wakeFor(this.#configureAll(change));
    return { generation: this.#generation, lastGrant: this.#takes };
  }

  async missing(taskIds: readonly TaskId[]): Promise<readonly TaskId[]> {
    return taskIds.filter((taskId) => this.#find(taskId) === undefined);
  }

  /** All at once. */
  async listOut(): Promise<OutStretch> {
    const out = this.#tasks.filter(({ state }) => state !== 'waiting');
    out.sort((a, b) => a.outSince - b.outSince);
    const entries = out.map(({ taskId, grant, queue, state, outSince }) => {
      const forMs = this.#nowMs() - outSince;
      return { taskId, grant, queue, confirmed: state === 'running', forMs };
    });
    return { entries, next: null };
  }

  /** Those that did change; others may be told as well. */
  async levels(): Promise<readonly BucketLevel[]> {
    const changed = [...this.#buckets].filter(([, bucket]) => bucket.hasChanged);
    for (const [, bucket] of changed) bucket.hasChanged = false;
    return changed.map(([bucket, { tokens }]) => ({ bucket, tokens }));
  }

  /** Null: there is no such bucket. */
  tokensOf(bucket: string): number | null {
    return this.#buckets.get(bucket)?.tokens ?? null;
  }

  async live(name: string): Promise<LiveQueue> {
    const waiting = this.#waitingIn(name);
    const ages = waiting.map(({ eligibleAt }) => this.#nowMs() - eligibleAt);
    return {
      depth: countBy(waiting.map(({ priority }) => priority)),
      effectiveDepth: countBy(waiting.map((task) => this.#effective(task))),
      running: this.#tasks.filter(({ queue, state }) => queue === name && state === 'running')
        .length,
      oldestAgeMs: ages.length === 0 ? null : Math.max(...ages),
      buckets: this.#bucketNames(name).flatMap((bucket) => {
        const held = this.#buckets.get(bucket);
        if (held === undefined) return [];
        const { tokens, limit, used, countedMs } = held;
        return [{ bucket, tokens, limit, used, countedMs }];
      }),
    };
  }

  async survey(noteAge: NoteAge): Promise<readonly SurveyedQueue[]> {
    const names = new Set(
      this.#tasks.filter(({ state }) => state !== 'taken').map(({ queue }) => queue),
    );
    return Promise.all(
      [...names].map(async (name) => {
        const { depth, running } = await this.live(name);
        const waiting = this.#waitingIn(name);
        for (const task of waiting) {
          noteAge(this.#effective(task), this.#nowMs() - task.eligibleAt, 1);
        }
        const at = (priority: Priority) => {
          const ages = waiting
            .filter((task) => this.#effective(task) === priority)
            .map(({ eligibleAt }) => this.#nowMs() - eligibleAt);
          return { count: ages.length, oldestAgeMs: ages.length === 0 ? null : Math.max(...ages) };
        };
        return {
          queue: name,
          depth,
          waiting: { high: at('high'), medium: at('medium'), low: at('low') },
          running,
          heldBackBy: waiting.length === 0 ? null : this.#heldBackBy(name),
        };
      }),
    );
  }

  #heldBackBy(name: string): HeldBackBy | null {
    const queue = this.#queue(name);
    if (queue.pausedUntil > this.#nowMs()) return 'pause';
    if (queue.probesLeft <= 0) return 'probes';
    if (this.#places(name) <= 0) return 'max_concurrency';
    const heads = new Map<string, Task>();
    for (const task of this.#waitingIn(name).sort((a, b) => this.#compare(a, b))) {
      if (!heads.has(laneKey(task.lane))) heads.set(laneKey(task.lane), task);
    }
    const waits = [...heads.values()].every((task) => {
      const sharedAt = this.#tokensAt(task, this.#sharedBuckets(name));
      return Math.max(this.#opensAt(task), sharedAt) > this.#nowMs();
    });
    return waits ? 'rate_limit' : null;
  }

  async position(taskId: TaskId, limit: number): Promise<number | null> {
    const task = this.#find(taskId);
    if (task?.state !== 'waiting') return null;
    const line = this.#waitingIn(task.queue).sort((a, b) => this.#compare(a, b));
    return Math.min(line.indexOf(task), limit);
  }

  onWake(listener: (wake: Wake) => number): () => void {
    this.#listener = listener;
    return () => undefined;
  }

  wakeOthers(): void {
    // There are no others.
  }

  trouble(): null {
    return null;
  }

  onReturn(): () => void {
    return () => undefined;
  }

  async close(): Promise<void> {
    this.#isOpen = false;
  }

  #offer(offer: Offer): OfferOutcome {
    if (this.#find(offer.taskId) !== undefined) return 'held';
    const line = this.#lineOf(offer);
    const isBehind = line !== null && compare(offer, line.from) >= 0;
    if (isBehind || (this.#roomOf(offer) <= 0 && !this.#pushOut(offer))) {
      this.#leave(offer);
      return 'left';
    }
    return this.#accept(offer);
  }

  #accept({ lane, ageMs, eligibleAtMs, ...rest }: Offer): 'accepted' {
    const order = { eligibleAt: this.#nowMs() - ageMs, orderedAt: eligibleAtMs };
    const place = { lane, queue: lane.queue, ...order };
    const untaken = { grant: '', outSince: 0, takenUnder: null, paidUnder: null };
    this.#tasks.push({ ...rest, ...place, ...untaken, state: 'waiting' });
    const queue = this.#queue(lane.queue);
    if (queue.turn === 0) queue.turn = ++this.#turns;
    return 'accepted';
  }

  #pushOut(offer: Offer): boolean {
    const line = this.#waitingOf(offer).map((task) => ({ task, place: placeOf(task) }));
    const youngest = line.sort((a, b) => compare(a.place, b.place)).at(-1);
    if (youngest === undefined || compare(offer, youngest.place) > 0) return false;
    this.#tasks = this.#tasks.filter((task) => task !== youngest.task);
    this.#pushedOut.push(youngest.task);
    // What was announced is in no line yet.
    if (youngest.place.eligibleAtMs < never) this.#leave(youngest.place);
    return true;
  }

  #feed({ window, round, offers, next }: Stretch): OfferOutcome[] {
    const line = this.#lineOf(window);
    if (line?.round !== round) return offers.map((offer) => this.#offer(offer));
    const outcomes = offers.map((offer) => {
      if (this.#find(offer.taskId) !== undefined) return 'held';
      if (this.#roomOf(offer) > 0) return this.#accept(offer);
      this.#leave(offer);
      return 'left';
    });
    const rest = [...line.leftSince, ...(next === null ? [] : [next])].sort(compare);
    this.#lines = this.#lines.filter((other) => other !== line);
    const [from] = rest;
    if (from !== undefined) {
      this.#lines.push({ window, from, leftSince: [], round: ++this.#rounds });
    }
    return outcomes;
  }

  #leave({ lane, priority, eligibleAtMs, seq }: Place): void {
    const position = { eligibleAtMs, seq };
    const line = this.#lineOf({ lane, priority });
    if (line === null) {
      const round = ++this.#rounds;
      const window = { lane, priority };
      this.#lines.push({ window, from: position, leftSince: [], round });
      return;
    }
    line.leftSince.push(position);
    if (compare(position, line.from) < 0) line.from = position;
  }

  #lineOf({ lane, priority }: Window): Line | null {
    const found = this.#lines.find(
      ({ window }) => window.priority === priority && laneKey(window.lane) === laneKey(lane),
    );
    return found ?? null;
  }

  /** Lane by lane with the number accepted; then the queues that lost what they were short of. */
  #tell(offers: readonly Newcomer[], outcomes: readonly OfferOutcome[]): OfferAnswer {
    const wakes = new Map<string, Wake>();
    for (const [index, { lane }] of offers.entries()) {
      if (outcomes[index] !== 'accepted') continue;
      const count = (wakes.get(laneKey(lane))?.count ?? 0) + 1;
      wakes.set(laneKey(lane), { lanes: [lane], count });
    }
    for (const wake of wakes.values()) this.#listener(wake);
    const gone = this.#pushedOut.splice(0);
    const stuck = [...this.#queues].filter(([, { short }]) => short && gone.includes(short));
    this.#wakeFor(stuck.map(([name]) => name));
    return { kind: 'offered', outcomes };
  }

  /**
   * Looks at the first entry of every lane that the worker can do, in the order in which they would
   * be taken, until one is found that may be. Looking is not idle: it finds out what is short.
   */
  #walk(request: TakeRequest): Walk {
    const waitingSets = new Set<string>();
    let opensAt = never;
    let opensAtLeastAt = never;
    for (const task of this.#heads(request)) {
      const shared = this.#sharedSet(task.queue);
      if (waitingSets.has(shared)) {
        const ownAt = this.#opensAt(task);
        if (ownAt > this.#nowMs()) opensAtLeastAt = Math.min(opensAtLeastAt, ownAt);
        continue;
      }
      this.#noteIfShort(task);
      let taskAt = this.#opensAt(task);
      if (taskAt <= this.#nowMs()) {
        taskAt = this.#tokensAt(task, this.#sharedBuckets(task.queue));
        if (taskAt <= this.#nowMs()) return { next: task, opensAt, opensAtLeastAt };
        waitingSets.add(shared);
      }
      opensAt = Math.min(opensAt, taskAt);
    }
    return { next: undefined, opensAt, opensAtLeastAt: Math.min(opensAt, opensAtLeastAt) };
  }

  #heads({ taskTypes, capabilities, queues }: TakeRequest): Task[] {
    const matching = this.#tasks.filter(
      ({ state, lane }) =>
        state === 'waiting' &&
        (taskTypes === null || taskTypes.includes(lane.taskType)) &&
        (queues === null || queues.includes(lane.queue)) &&
        lane.capabilities.every((capability) => capabilities.includes(capability)),
    );
    const heads = new Map<string, Task>();
    for (const task of matching.sort((a, b) => this.#compare(a, b))) {
      // A worker for every type sees wildcard lanes.
      const lane = taskTypes === null ? { ...task.lane, taskType: everyType } : task.lane;
      if (!heads.has(laneKey(lane))) heads.set(laneKey(lane), task);
    }
    return [...heads.values()];
  }

  /** When its queue's own conditions let it go. */
  #opensAt(task: Task): number {
    const { queue: name } = task;
    const queue = this.#queue(name);
    if (this.#places(name) <= 0 || !this.#knowsShared(name)) return never;
    const obstacle = this.#obstacleTo(task);
    return Math.max(
      this.#nowMs(),
      queue.pausedUntil,
      this.#tokensAt(task, this.#ownBuckets(name)),
      obstacle === null ? 0 : this.#tokensAt(obstacle, this.#ownBuckets(name)),
    );
  }

  #noteIfShort(task: Task): void {
    if (this.#isShort(task) && this.#obstacleTo(task) === null) {
      this.#queue(task.queue).short = task;
    }
  }

  /** The short entry of its queue, if that is another one, still waits, is still short, and comes first. */
  #obstacleTo(task: Task): Task | null {
    const { short } = this.#queue(task.queue);
    if (short === null || short === task || !this.#tasks.includes(short)) return null;
    const stands = short.state === 'waiting' && this.#compare(short, task) < 0;
    return stands && this.#isShort(short) ? short : null;
  }

  #isShort(task: Task): boolean {
    return this.#tokensAt(task, this.#ownBuckets(task.queue)) > this.#nowMs();
  }

  #tokensAt({ cost }: Task, buckets: readonly ReferenceBucket[]): number {
    const waits = buckets.map((bucket) => bucket.waitMsFor(cost));
    return this.#nowMs() + Math.max(0, ...waits);
  }

  #waitUntil(opensAt: number): number | null {
    return opensAt < never ? opensAt - this.#nowMs() : null;
  }

  #grant(task: Task, grant: string): Taken {
    const { taskId, lane, priority, cost } = task;
    const effectivePriority = this.#effective(task);
    const queue = this.#queue(task.queue);
    queue.turn = ++this.#turns;
    queue.probesLeft -= 1;
    for (const bucket of this.#bucketsOf(task.queue)) bucket.spend(cost, grant);
    const under = { takenUnder: queue.version, paidUnder: queue.limitsVersion };
    Object.assign(task, { state: 'taken', grant, outSince: this.#nowMs(), ...under });
    return { taskId, grant, lane, priority, effectivePriority };
  }

  #find(taskId: TaskId): Task | undefined {
    return this.#tasks.find((task) => task.taskId === taskId);
  }

  #queue(name: string): Queue {
    const queue = this.#queues.get(name) ?? {
      version: Number.NEGATIVE_INFINITY,
      limitsVersion: Number.NEGATIVE_INFINITY,
      settings: defaultQueueSettings,
      pausedUntil: Number.NEGATIVE_INFINITY,
      probesLeft: never,
      turn: 0,
      short: null,
    };
    this.#queues.set(name, queue);
    return queue;
  }

  /** Answers which queues have changed. */
  #configureAll({ limits, queues }: Configuration): string[] {
    for (const limit of limits) this.#configureLimit(limit);
    return queues.filter((queue) => this.#configureQueue(queue)).map(({ name }) => name);
  }

  #configureLimit(limit: ConfiguredLimit): void {
    const known = this.#limits.get(limit.name);
    if (known !== undefined && limit.version <= known.version) return;
    this.#limits.set(limit.name, limit);
    this.#putBucket(sharedBucket(limit.name), limit.limit);
  }

  #configureQueue({ name, version, settings, pausedForMs, probes }: ConfiguredQueue): boolean {
    const queue = this.#queue(name);
    if (version <= queue.version) return false;
    const before = this.#ownBucketNames(name);
    const limitsBefore = this.#bucketNames(name).sort().join();
    const pausedUntil = settings.paused
      ? this.#nowMs() + (pausedForMs ?? never)
      : Number.NEGATIVE_INFINITY;
    Object.assign(queue, { version, settings, pausedUntil, probesLeft: probes ?? never });
    if (this.#bucketNames(name).sort().join() !== limitsBefore) queue.limitsVersion = version;
    const after = this.#ownBucketNames(name);
    for (const bucket of before) if (!after.includes(bucket)) this.#buckets.delete(bucket);
    for (const limit of settings.limits) {
      if (!('use' in limit)) this.#putBucket(ownBucket(name, limit.unit), limit);
    }
    return true;
  }

  #putBucket(name: string, limit: RateLimit): void {
    const held = this.#buckets.get(name);
    if (held?.limit.unit === limit.unit) held.change(limit);
    else this.#buckets.set(name, new ReferenceBucket(limit, this.#nowMs));
  }

  #bucketNames(name: string): string[] {
    return this.#queue(name).settings.limits.map((limit) =>
      'use' in limit ? sharedBucket(limit.use) : ownBucket(name, limit.unit),
    );
  }

  #ownBucketNames(name: string): string[] {
    return this.#queue(name).settings.limits.flatMap((limit) =>
      'use' in limit ? [] : [ownBucket(name, limit.unit)],
    );
  }

  #sharedNames(name: string): string[] {
    const { limits } = this.#queue(name).settings;
    return [...new Set(limits.flatMap((limit) => ('use' in limit ? [limit.use] : [])))].sort();
  }

  #sharedSet(name: string): string {
    return this.#sharedNames(name).join(' and ');
  }

  #knowsShared(name: string): boolean {
    return this.#sharedNames(name).every((limit) => this.#limits.has(limit));
  }

  #ownBuckets(name: string): ReferenceBucket[] {
    return this.#held(this.#ownBucketNames(name));
  }

  #sharedBuckets(name: string): ReferenceBucket[] {
    return this.#held(this.#sharedNames(name).map(sharedBucket));
  }

  #bucketsOf(name: string): ReferenceBucket[] {
    return [...this.#ownBuckets(name), ...this.#sharedBuckets(name)];
  }

  #held(names: readonly string[]): ReferenceBucket[] {
    return names.flatMap((name) => this.#buckets.get(name) ?? []);
  }

  #waitingIn(queue: string): Task[] {
    return this.#tasks.filter((task) => task.queue === queue && task.state === 'waiting');
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

  /** How many more may be taken, as far as slots and probes go. */
  #places(name: string): number {
    const { settings, probesLeft } = this.#queue(name);
    const inUse = this.#tasks.filter((task) => task.queue === name && task.state !== 'waiting');
    return Math.min(probesLeft, (settings.maxConcurrency ?? never) - inUse.length);
  }

  #roomOf(window: Window): number {
    const { maxReady } = this.#queue(window.lane.queue).settings;
    return maxReady - this.#waitingOf(window).length;
  }

  #waitingOf({ lane, priority }: Window): Task[] {
    return this.#waitingIn(lane.queue).filter(
      (task) => task.priority === priority && laneKey(task.lane) === laneKey(lane),
    );
  }

  #release(tasks: readonly Task[], settle: () => void): void {
    const names = [...this.#queues.keys()];
    const full = names.filter((name) => this.#places(name) <= 0);
    for (const bucket of this.#buckets.values()) bucket.hasRisen = false;
    settle();
    this.#tasks = this.#tasks.filter((task) => !tasks.includes(task));
    const freed = full.filter((name) => this.#places(name) > 0);
    const risen = names.filter((name) => this.#ownBuckets(name).some(({ hasRisen }) => hasRisen));
    this.#wakeFor([...new Set([...freed, ...risen])]);
  }

  /** Not those that share a limit which has risen: which of them are told is left open. */
  #wakeFor(names: readonly string[]): void {
    for (const name of names) {
      const waiting = this.#waitingIn(name);
      const lanes = new Map(waiting.map(({ lane }) => [laneKey(lane), lane]));
      const count = Math.min(waiting.length, this.#wakesOnOpening(name));
      if (count > 0) this.#listener({ lanes: [...lanes.values()], count });
    }
  }

  #wakesOnOpening(name: string): number {
    const { pausedUntil, settings } = this.#queue(name);
    const places = this.#places(name);
    if (places <= 0 || pausedUntil === never || !this.#knowsShared(name)) return 0;
    // Who gets the first token says when the next one falls due.
    return pausedUntil > this.#nowMs() || settings.limits.length > 0 ? 1 : places;
  }
}

function compare(a: Position, b: Position): number {
  // The beginning of all lines is an infinity: it has no difference to itself.
  return a.eligibleAtMs === b.eligibleAtMs ? a.seq - b.seq : a.eligibleAtMs - b.eligibleAtMs;
}

function placeOf({ lane, priority, orderedAt, seq }: Task): Place {
  return { lane, priority, eligibleAtMs: orderedAt, seq };
}

function countBy(found: readonly Priority[]): Record<Priority, number> {
  const counts = { high: 0, medium: 0, low: 0 };
  for (const priority of found) counts[priority] += 1;
  return counts;
}
