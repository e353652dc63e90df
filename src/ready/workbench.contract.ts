import { expect } from 'vitest';
import { firstIdAt, type TaskId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import type { Priority } from '../domain/priority.js';
import {
  defaultQueueSettings,
  type Cost,
  type QueueSettings,
  type RateLimit,
} from '../domain/queue-settings.js';
import type {
  ConfiguredQueue,
  Grant,
  Offer,
  OfferOutcome,
  ReadyQueue,
  ReadyState,
  TakeAnswer,
  Taken,
  TakeRequest,
  Wake,
} from './ready-queue.js';

export interface ReadyQueueUnderTest {
  readonly queue: ReadyQueue;
  /** What the queue takes for now. */
  nowMs(): number | Promise<number>;
  /** Makes that much pass on the queue's own clock. */
  advance(ms: number): void | Promise<void>;
  /** How far that clock may run on by itself during a test; 0 when it stands still. */
  readonly driftMs: number;
  /** Makes it lose its contents, where an open one does not let itself be restored. */
  lose?(): Promise<void>;
  /** Throws when its contents contradict themselves. */
  audit?(): Promise<void>;
}

export type Untold = Omit<Taken, 'grant'>;

interface TaskSketch extends Partial<Lane> {
  readonly priority?: Priority;
  readonly ageMs?: number;
  readonly seq?: number;
  readonly cost?: Cost;
}

/** Settings, and among them how long the pause lasts and how many probes there are. */
export type SettingsSketch = Partial<QueueSettings> & {
  readonly pausedForMs?: number;
  readonly probes?: number;
};

export const anyWork: TakeRequest = { taskTypes: null, capabilities: [], queues: null, count: 1 };

/** Nothing configured, nothing running. */
export const blank: ReadyState = {
  generation: 1,
  limits: [],
  queues: [],
  levels: [],
  running: [],
  behind: [],
};

/** Ids and sequence numbers that grow, as Postgres gives them. */
export function offerMaker(nowMs: () => number = () => 0): (sketch?: TaskSketch) => Offer {
  let made = 0;
  return ({ priority = 'medium', ageMs = 0, seq, cost = {}, ...lane } = {}) => {
    made += 1;
    return {
      taskId: firstIdAt(made),
      lane: { queue: 'q', taskType: 't', capabilities: [], ...lane },
      priority,
      ageMs,
      eligibleAtMs: nowMs() - ageMs,
      seq: seq ?? made,
      cost,
    };
  };
}

export async function restore(
  subject: ReadyQueueUnderTest,
  state: Partial<ReadyState> = {},
): Promise<void> {
  const { queue } = subject;
  const full = { ...blank, ...state };
  await subject.lose?.();
  expect(await queue.beginRestore(full.generation)).toBe('yours');
  expect(await queue.restore(full)).toBe(true);
}

/** A ready queue that was just restored, and short words for what tests do with it. */
export class Workbench {
  readonly subject: ReadyQueueUnderTest;
  readonly queue: ReadyQueue;
  readonly task: ReturnType<typeof offerMaker>;
  readonly #grants = new Map<TaskId, string>();
  #elapsedMs = 0;
  #versions = 0;
  #generation = 0;

  constructor(subject: ReadyQueueUnderTest) {
    this.subject = subject;
    this.queue = subject.queue;
    this.task = offerMaker(() => this.#elapsedMs);
  }

  static async open(make: () => Promise<ReadyQueueUnderTest>): Promise<Workbench> {
    const bench = new Workbench(await make());
    await bench.restore();
    return bench;
  }

  restore(state: Partial<ReadyState> = {}): Promise<void> {
    this.#generation += 1;
    for (const { taskId, grant } of state.running ?? []) this.#grants.set(taskId, grant);
    return restore(this.subject, { generation: this.#generation, ...state });
  }

  async advance(ms: number): Promise<void> {
    this.#elapsedMs += ms;
    await this.subject.advance(ms);
  }

  async offer(...offers: Offer[]): Promise<readonly OfferOutcome[]> {
    const answer = await this.queue.offer(offers);
    if (answer.kind !== 'offered') throw new Error(`the offer was answered ${answer.kind}`);
    return answer.outcomes;
  }

  answer(request: Partial<TakeRequest> = {}): Promise<TakeAnswer> {
    return this.queue.take({ ...anyWork, ...request });
  }

  /** Remembers the grants, and leaves them out: they are the queue's own matter. */
  async take(request: Partial<TakeRequest> = {}): Promise<readonly Untold[]> {
    const answer = await this.answer(request);
    if (answer.kind !== 'taken') return [];
    return answer.entries.map(({ grant, ...entry }) => {
      this.#grants.set(entry.taskId, grant);
      return entry;
    });
  }

  async takeIds(request: Partial<TakeRequest> = {}): Promise<TaskId[]> {
    return (await this.take(request)).map(({ taskId }) => taskId);
  }

  async run(request: Partial<TakeRequest> = {}): Promise<TaskId[]> {
    const taskIds = await this.takeIds(request);
    await this.confirm(...taskIds);
    return taskIds;
  }

  granted(taskIds: readonly TaskId[]): Grant[] {
    return taskIds.map((taskId) => ({ taskId, grant: this.#grants.get(taskId) ?? 'none' }));
  }

  confirm(...taskIds: TaskId[]): Promise<void> {
    return this.queue.confirm(this.granted(taskIds));
  }

  refund(...taskIds: TaskId[]): Promise<void> {
    return this.queue.refund(this.granted(taskIds));
  }

  finish(...taskIds: TaskId[]): Promise<void> {
    return this.queue.finish(
      this.granted(taskIds).map((one) => ({ ...one, queue: 'q', reserved: {}, usage: null })),
    );
  }

  /** Ends a task that cost `reserved` and used `usage`. */
  settle(offer: Offer, usage: Cost): Promise<void> {
    const { taskId, lane, cost } = offer;
    const settled = { queue: lane.queue, reserved: cost, usage };
    return this.queue.finish(this.granted([taskId]).map((one) => ({ ...one, ...settled })));
  }

  /** The instant in the settings is no help: only `pausedForMs` is by a clock that all agree on. */
  settings({ pausedForMs, probes, ...change }: SettingsSketch, name = 'q'): ConfiguredQueue {
    this.#versions += 1;
    const pausedUntil = pausedForMs === undefined ? null : new Date(0);
    return {
      name,
      version: this.#versions,
      settings: { ...defaultQueueSettings, pausedUntil, ...change },
      pausedForMs: pausedForMs ?? null,
      probes: probes ?? null,
    };
  }

  async configure(change: SettingsSketch, name = 'q'): Promise<boolean> {
    const queues = [this.settings(change, name)];
    return (await this.queue.configure({ limits: [], queues })) !== null;
  }

  async share(name: string, limit: RateLimit): Promise<boolean> {
    this.#versions += 1;
    const limits = [{ name, version: this.#versions, limit }];
    return (await this.queue.configure({ limits, queues: [] })) !== null;
  }

  async expectWait(ms: number | null, request: Partial<TakeRequest> = {}): Promise<void> {
    const answer = await this.answer(request);
    if (answer.kind !== 'wait') throw new Error(`a wait was due, not ${JSON.stringify(answer)}`);
    if (ms === null || answer.waitMs === null) {
      expect(answer.waitMs).toBe(ms);
      return;
    }
    expect(answer.waitMs).toBeLessThanOrEqual(ms);
    expect(answer.waitMs).toBeGreaterThanOrEqual(ms - this.subject.driftMs);
  }

  async listen(during: () => Promise<unknown>): Promise<Wake[]> {
    const wakes: Wake[] = [];
    const stop = this.queue.onWake((wake) => {
      wakes.push(wake);
      return wake.count;
    });
    await during();
    stop();
    return wakes;
  }
}
