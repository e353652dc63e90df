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
