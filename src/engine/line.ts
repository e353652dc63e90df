import { AgeSketch } from '../domain/age-sketch.js';
import { addAges, urgencyOf } from '../domain/line-segments.js';
import { effectivePriority, priorities, type Priority } from '../domain/priority.js';
import { lineStart } from '../ready/left-line.js';
import type { HeldBackBy, SurveyedQueue, Waiting, Window } from '../ready/ready-queue.js';
import { eachInTurns } from '../runtime/turns.js';
import { findWindows } from '../store/line-stretches.js';
import { approximateNow, type EngineContext } from './context.js';
import { LeftCounts, type BehindWindow } from './left-counts.js';
import type { QueueDirectory } from './queue-directory.js';
import { Refreshed } from './refreshed.js';

type ByPriority<Value> = Record<Priority, Value>;

/** The tasks of a queue that could be taken. */
export interface QueueLine {
  /** By submitted priority. */
  readonly depth: Readonly<ByPriority<number>>;
  /** By effective priority. */
  readonly waiting: Readonly<ByPriority<Waiting>>;
  /** Of these, what is in Postgres alone. */
  readonly backlog: number;
  readonly running: number;
  readonly heldBackBy: HeldBackBy | null;
}

export interface LineSnapshot {
  readonly queues: ReadonlyMap<string, QueueLine>;
  /** By effective priority. */
  readonly ages: Readonly<ByPriority<AgeSketch>>;
  /** By effective priority, over all queues. */
  readonly total: Readonly<ByPriority<Waiting>>;
  readonly running: number;
  /** False: long lines are still being counted, and the counts are lower bounds. */
  readonly isWhole: boolean;
}

/** Windows that are counted where this process has no ready queue. */
const maxWindows = 10_000;
/** Windows that are behind and counted anew by one look. */
const windowsLookedAt = 500;

const emptyLine: QueueLine = {
  depth: { high: 0, medium: 0, low: 0 },
  waiting: {
    high: { count: 0, oldestAgeMs: null },
    medium: { count: 0, oldestAgeMs: null },
    low: { count: 0, oldestAgeMs: null },
  },
  backlog: 0,
  running: 0,
  heldBackBy: null,
};

/**
 * How many tasks wait and for how long, right to the last few seconds. The ready queue knows all about what it holds,
 * and that is the whole line of nearly every window. Of windows that are behind, the rest is counted in Postgres
 * in bounded rounds.
 */
export class Line {
  readonly #context: EngineContext;
  readonly #queues: QueueDirectory;
  readonly #isServing: () => boolean;
  readonly #left: LeftCounts;
  readonly #snapshot: Refreshed<LineSnapshot>;

  constructor(context: EngineContext, queues: QueueDirectory, isServing: () => boolean) {
    this.#context = context;
    this.#queues = queues;
    this.#isServing = isServing;
    this.#left = new LeftCounts(context.db.reads);
    this.#snapshot = new Refreshed(() => this.#look());
  }

  snapshot(): Promise<LineSnapshot> {
    return this.#snapshot.get();
  }

  lookNow(): Promise<LineSnapshot> {
    return this.#snapshot.refresh();
  }

  /** As last counted, where Postgres takes too long to count. */
  async of(queue: string): Promise<QueueLine> {
    const { queues } = await this.#snapshot.getEvenOld();
    return queues.get(queue) ?? emptyLine;
  }

  async #look(): Promise<LineSnapshot> {
    const behind = await this.#behind();
    const ages = byPriority(() => new AgeSketch());
    const surveyed = this.#hasReadyQueue()
      ? await this.#context.ready.survey((priority, ageMs, count) => {
          ages[priority].add(ageMs, count);
        })
      : [];
    const isWhole = await this.#left.refresh(behind);
    const queues = new Map(surveyed.map((one) => [one.queue, withoutBacklog(one)]));
    const nowMs = approximateNow(this.#context).getTime();
    await eachInTurns(behind, ({ window }) => this.#addLeft(queues, window, ages, nowMs));
    return { queues, ages, isWhole, ...totals(queues.values()) };
  }

  /** In a process that does not serve the ready queue in memory is empty, and all lines are in Postgres. */
  #hasReadyQueue(): boolean {
    const { mode, ready } = this.#context;
    return mode === 'memory' ? this.#isServing() : ready.trouble() === null;
  }

  async #behind(): Promise<BehindWindow[]> {
    const { db, ready } = this.#context;
    if (!this.#hasReadyQueue()) {
      const found = await findWindows(db.reads, maxWindows);
      const windows = await this.#left.longestUnseenFirst(found);
      return windows.map((window) => ({ window, from: lineStart }));
    }
    return lookAtLeft(ready, await this.#left.longestUnseenFirst(await ready.listBehind()));
  }

  #addLeft(
    queues: Map<string, QueueLine>,
    { lane, priority }: BehindWindow['window'],
    ages: ByPriority<AgeSketch>,
    nowMs: number,
  ): void {
    const segments = this.#left.segmentsOf({ lane, priority });
    const { ageing } = this.#queues.settingsOf(lane.queue);
    const urgency = urgencyOf(segments, priority, ageing, nowMs);
    addAges(segments, nowMs, (ageMs) => ages[effectivePriority(priority, ageMs, ageing)]);
    const line = queues.get(lane.queue) ?? emptyLine;
    const added = segments.reduce((sum, { count }) => sum + count, 0);
    queues.set(lane.queue, {
      ...line,
      depth: { ...line.depth, [priority]: line.depth[priority] + added },
      backlog: line.backlog + added,
      waiting: byPriority((level) => {
        const { count, eligibleAtMs } = urgency[level];
        const oldestAgeMs = eligibleAtMs === null ? null : Math.max(0, nowMs - eligibleAtMs);
        return joined(line.waiting[level], { count, oldestAgeMs });
      }),
    });
  }
}

/** Of so many windows at most: after a rebuild all of them are behind. */
async function lookAtLeft(
  ready: EngineContext['ready'],
  all: readonly Window[],
): Promise<BehindWindow[]> {
  const windows = all.slice(0, windowsLookedAt);
  const looks = windows.length === 0 ? [] : await ready.look(windows);
  const looked = windows.flatMap((window, index) => {
    const left = looks[index]?.left ?? null;
    return left === null ? [] : [{ window, from: left.from }];
  });
  const others = all.slice(windowsLookedAt).map((window) => ({ window, from: null }));
  return [...looked, ...others];
}

function withoutBacklog({ depth, waiting, running, heldBackBy }: SurveyedQueue): QueueLine {
  return { depth, waiting, backlog: 0, running, heldBackBy };
}

function totals(lines: Iterable<QueueLine>): Pick<LineSnapshot, 'total' | 'running'> {
  const total = byPriority(() => ({ count: 0, oldestAgeMs: null as number | null }));
  let running = 0;
  for (const line of lines) {
    for (const level of priorities) {
      const { count, oldestAgeMs } = line.waiting[level];
      const sum = total[level];
      sum.count += count;
      if (oldestAgeMs !== null && oldestAgeMs > (sum.oldestAgeMs ?? -1))
        sum.oldestAgeMs = oldestAgeMs;
    }
    running += line.running;
  }
  return { total, running };
}

function joined(a: Waiting, b: Waiting): Waiting {
  const ages = [a.oldestAgeMs, b.oldestAgeMs].filter((age) => age !== null);
  return {
    count: a.count + b.count,
    oldestAgeMs: ages.length === 0 ? null : Math.max(...ages),
  };
}

function byPriority<Value>(of: (priority: Priority) => Value): ByPriority<Value> {
  return Object.fromEntries(priorities.map((one) => [one, of(one)])) as ByPriority<Value>;
}
