import type { Priority } from '../domain/priority.js';
import type { QueueView } from './queues-api.js';
import type { WorkerView } from './workers-api.js';

export interface Statistics {
  readonly queues: Readonly<
    Record<Priority, { readonly depth: number; readonly oldestAgeSeconds: number | null }>
  >;
  /** Tasks that run now. */
  readonly running: number;
  readonly workers: {
    readonly active: number;
    readonly draining: number;
    readonly dead: number;
    readonly totalCapacity: number;
    readonly usedCapacity: number;
  };
  readonly age: {
    readonly p50Seconds: number | null;
    readonly p95Seconds: number | null;
    readonly oldestSeconds: number | null;
  };
  readonly throughput: {
    readonly completedLastMinute: number;
    readonly failedLastMinute: number;
    readonly avgTaskDurationSeconds: number | null;
  };
  /** Tasks that have not ended, of how many at most. */
  readonly admission: { readonly active: number; readonly maxActive: number };
  readonly recovery: {
    readonly leasesLapsedLastHour: number;
    readonly timeoutsLastHour: number;
    readonly reofferedLastHour: number;
  };
}

/** Some of them, the worst first, and how many there are. */
export interface Worst<Item> {
  readonly items: readonly Item[];
  readonly totalCount: number;
}

/** What a person should look at. */
export interface Attention {
  /** Stopped, paused, recovering, with settings that are not in force, or with a task that waited for 10 minutes. */
  readonly queues: Worst<QueueView>;
  /** Suspended: they fail where others succeed. */
  readonly workers: Worst<WorkerView>;
}
