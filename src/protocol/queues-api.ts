import type { Confinement } from '../domain/confinement.js';
import type { Priority } from '../domain/priority.js';
import type { QueueChange, QueueDraft, RateLimitDraft } from '../domain/queue-draft.js';
import type { QueueSettings, RateLimit } from '../domain/queue-settings.js';
import type { Page, PageRequest } from './page.js';

export type {
  CommonRates,
  QueueChange,
  QueueDraft,
  QueueLimitDraft,
  RateLimitDraft,
} from '../domain/queue-draft.js';

export interface QueueView {
  readonly name: string;
  readonly settings: QueueSettings;
  readonly version: number;
  /** False: Redis could not be told of the settings yet. Until it is, nothing of the queue starts. */
  readonly inForce: boolean;
  readonly live: QueueLive;
}

export interface QueueLive {
  readonly depth: Readonly<Record<Priority, number>>;
  readonly effectiveDepth: Readonly<Record<Priority, number>>;
  /** Tasks in line that the ready queue does not hold. */
  readonly backlog: number;
  /** Tasks that have not ended; null for a queue without `maxActive`. */
  readonly active: number | null;
  readonly running: number;
  /** Left of each unit, in the limit that has least; below zero: owed. */
  readonly tokens: Readonly<Record<string, number>>;
  /** Until there is a whole token of each unit; 0: there is; null: no limits. */
  readonly nextTokenInMs: number | null;
  /** Of each limit what was used of it, in the order of the settings. */
  readonly usage: readonly LimitUse[];
  /** 1; less while its service recovers: 0.25, then 0.5 of its own limits and of what ran before. */
  readonly recoveryFactor: number;
  readonly pausedUntil: Date | null;
  readonly pausedWhy: string | null;
  readonly circuit: 'closed' | 'open' | 'half_open';
  readonly oldestAgeSeconds: number | null;
  readonly lastMinute: {
    readonly started: number;
    readonly completed: number;
    readonly failed: number;
  };
}

/** A limit in the window up to now. */
export interface LimitUse {
  /** The name of a shared limit; null: the queue's own. */
  readonly limit: string | null;
  readonly unit: string;
  /** To a tenth of the window. */
  readonly used: number;
  readonly allowed: number;
  /** Longer than that of the settings while its service recovers. */
  readonly perSeconds: number;
  /** Of the window, what was counted: less when the ready queue was filled later. */
  readonly countedSeconds: number;
  /** Until a task that costs one of the unit may start; 0: now. */
  readonly nextInMs: number;
}

export interface LimitView extends RateLimit {
  readonly name: string;
  /** False: Redis could not be told yet. Until it is, nothing starts of the queues that use the limit. */
  readonly inForce: boolean;
}

export interface QueueApi {
  /** `within`: what the caller reaches. */
  listQueues(page?: PageRequest, within?: Confinement): Promise<Page<QueueView>>;
  getQueue(name: string): Promise<QueueView>;
  /** Replaces the whole configuration. */
  putQueue(name: string, draft: QueueDraft): Promise<QueueView>;
  /** Keeps what the change does not name. */
  changeQueue(name: string, change: QueueChange): Promise<QueueView>;
  pauseQueue(name: string, until?: Date): Promise<QueueView>;
  resumeQueue(name: string): Promise<QueueView>;
  listLimits(): Promise<readonly LimitView[]>;
  getLimit(name: string): Promise<LimitView>;
  putLimit(name: string, limit: RateLimitDraft): Promise<LimitView>;
  deleteLimit(name: string): Promise<void>;
}
