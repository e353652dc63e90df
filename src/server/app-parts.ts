import type { AnswerBudget } from '../engine/answer-budget.js';
import type { Logger } from '../runtime/log.js';
import type { ConnectionLimits } from './connection-limits.js';
import type { Drain } from './drain.js';
import type { Overload } from './overload.js';
import type { EventSource, KeyRing, Metrics, ServedApi, ServerHealth } from './ports.js';

export type { App } from './app-type.js';

export interface AppParts {
  readonly api: ServedApi;
  readonly health: ServerHealth;
  readonly events: EventSource;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** The most that one task may be. */
  readonly taskBytes: number;
  /** The most that one request may be. */
  readonly requestBytes: number;
  readonly connections: ConnectionLimits;
  readonly keys: KeyRing;
  readonly doors: Doors;
  readonly overload: Overload;
  readonly drain: Drain;
  /** Shown as a badge in the dashboard; null: none. */
  readonly environment: string | null;
  /** Of all answers under way; shared with what reads them. */
  readonly answers: AnswerBudget;
}

/** What routes work with. The API is in the request, as its caller may use it. */
export type RouteParts = Omit<AppParts, 'api'>;

/** Who is let nearer than by default. */
export interface Doors {
  /** Whose pages may call; `https://host`, without a path. */
  readonly corsOrigins: readonly string[];
  /** Whether `/metrics` is answered without a key. */
  readonly openMetrics: boolean;
  /** Proxies that are believed who calls, and whether by TLS: addresses, or networks as CIDR. */
  readonly trustProxy: readonly string[];
}

type Supplied =
  'taskBytes' | 'requestBytes' | 'keys' | 'overload' | 'drain' | 'answers' | 'environment';

export type AppOptions = Omit<AppParts, Supplied | 'connections' | 'doors'> &
  Partial<Pick<AppParts, Supplied>> & {
    readonly doors?: Partial<Doors>;
    readonly connections?: Partial<ConnectionLimits>;
  };
