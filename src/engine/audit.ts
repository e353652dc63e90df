import {
  boundedDetails,
  changesBetween,
  type AuditAction,
  type AuditChanges,
} from '../domain/audit.js';
import { closed } from '../domain/circuit.js';
import type { JsonObject } from '../domain/json.js';
import type { QueueSettings, RateLimit } from '../domain/queue-settings.js';
import type { Caller } from '../protocol/caller.js';
import { defined } from '../protocol/defined.js';
import { insertAuditEntry } from '../store/audit.js';
import type { Instant, Queryable } from '../store/database.js';
import type { ConfiguredRow } from '../store/queues.js';

export interface Recorded {
  readonly action: AuditAction;
  /** Absent: many at once. */
  readonly subject?: string;
  readonly changes?: AuditChanges;
  readonly details?: JsonObject;
}

/** Writes down who changed what. In the transaction of the change, or right after a bulk action. */
export class Audit {
  readonly #now: () => Instant;

  constructor(now: () => Instant) {
    this.#now = now;
  }

  async record(db: Queryable, { actor }: Pick<Caller, 'actor'>, recorded: Recorded): Promise<void> {
    const { action, subject = null, changes = {}, details = {} } = recorded;
    const told = { ...details, ...defined({ on_behalf_of: actor.onBehalfOf }) };
    const entry = { actor, action, subject, changes, details: boundedDetails(told) };
    await insertAuditEntry(db, entry, this.#now());
  }
}

type Configured = Pick<ConfiguredRow, 'settings' | 'circuit'>;

/** In the names of the API. Null: there was no queue, and the usual settings counted. */
export function queueChanges(
  before: Configured | null,
  after: Configured,
  usual: QueueSettings,
): AuditChanges {
  return changesBetween(
    queueJson(before ?? { settings: usual, circuit: closed }),
    queueJson(after),
  );
}

function queueJson({ settings, circuit }: Configured): JsonObject {
  const { ageing } = settings;
  return {
    limits: settings.limits.map((limit) =>
      'use' in limit ? { use: limit.use } : limitJson(limit),
    ),
    max_concurrency: settings.maxConcurrency,
    max_ready: settings.maxReady,
    max_active: settings.maxActive,
    max_lanes: settings.maxLanes,
    paused: settings.paused,
    paused_until: settings.pausedUntil?.toISOString() ?? null,
    low_to_medium_ms: ageing.lowToMediumMs,
    low_to_high_ms: ageing.lowToHighMs,
    medium_to_high_ms: ageing.mediumToHighMs,
    // A resume closes it.
    circuit: circuit.kind,
  };
}

export function limitChanges(before: RateLimit | null, after: RateLimit | null): AuditChanges {
  return changesBetween(before && limitJson(before), after && limitJson(after));
}

function limitJson({ unit, rate, perSeconds, burst }: RateLimit): JsonObject {
  return { unit, rate, per_seconds: perSeconds, burst };
}
