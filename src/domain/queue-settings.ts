import { defaultAgeing, type Ageing } from './priority.js';

/** A rate in a unit: at most `rate` in any window of `perSeconds`. */
export interface RateLimit {
  readonly unit: string;
  readonly rate: number;
  readonly perSeconds: number;
  readonly burst: number | null;
}

/** A limit of the queue's own, or one that several queues share by its name. */
export type QueueLimit = RateLimit | { readonly use: string };

export interface QueueSettings {
  readonly limits: readonly QueueLimit[];
  /** Null: as many as the workers have room for. */
  readonly maxConcurrency: number | null;
  /** Entries in the ready queue for each lane and priority; the rest waits in Postgres. */
  readonly maxReady: number;
  /** Null: only the ceiling for all queues counts. */
  readonly maxActive: number | null;
  /** Combinations of task type and capability set that it may have. */
  readonly maxLanes: number;
  readonly paused: boolean;
  /** Null with `paused`: until resumed. */
  readonly pausedUntil: Date | null;
  readonly ageing: Ageing;
}

/** Of tasks that name none. */
export const defaultQueue = 'default';

export const defaultQueueSettings: QueueSettings = {
  limits: [],
  maxConcurrency: null,
  maxReady: 10_000,
  maxActive: null,
  maxLanes: 10_000,
  paused: false,
  pausedUntil: null,
  ageing: defaultAgeing,
};

/** What decides who may run is as nobody had said anything; `maxActive` and `maxLanes` decide who may come in. */
export function runsByDefault({
  limits,
  maxConcurrency,
  maxReady,
  paused,
  ageing,
}: QueueSettings): boolean {
  return (
    limits.length === 0 &&
    maxConcurrency === null &&
    maxReady === defaultQueueSettings.maxReady &&
    !paused &&
    ageing.lowToMediumMs === defaultAgeing.lowToMediumMs &&
    ageing.lowToHighMs === defaultAgeing.lowToHighMs &&
    ageing.mediumToHighMs === defaultAgeing.mediumToHighMs
  );
}

/** Units and how many of each a task costs, besides the one request it always costs. */
export type Cost = Readonly<Record<string, number>>;
