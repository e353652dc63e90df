import type { Priority } from '../domain/priority.js';

export interface Statistics {
  readonly queues: Readonly<
    Record<Priority, { readonly depth: number; readonly oldestAgeSeconds: number | null }>
  >;
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
