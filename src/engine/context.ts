import { SluiceError } from '../domain/errors.js';
import type { Cost } from '../domain/queue-settings.js';
import type { ScalingSettings } from '../domain/scaling.js';
import type { TaskEvent } from '../protocol/events.js';
import type { ReplicaReadyQueue } from '../ready/forwarded/replica-ready-queue.js';
import type { ReadyQueue } from '../ready/ready-queue.js';
import type { AlertOptions } from './alert-options.js';
import type { AnswerBudget } from './answer-budget.js';
import type { Bus } from '../runtime/bus.js';
import type { Clock } from '../runtime/clock.js';
import type { FlushFailure } from '../runtime/batcher.js';
import type { Logger } from '../runtime/log.js';
import type { TransitionLog } from '../runtime/transition-log.js';
import {
  DatabaseAwayError,
  LockedError,
  NoPartitionError,
  SlowReadError,
  type Database,
  type Instant,
} from '../store/database.js';
import type { TaskEvents } from './events.js';
import type { PayloadLog } from './payload-log.js';
import type { EngineSettings } from './settings.js';

/**
 * Who shares the ready queue. `memory`: nobody, one process serves. `replicas`: all processes of one Postgres, one of
 * which leads and keeps it in its memory. `redis`: all servers of one Redis.
 */
export type EngineMode = 'memory' | 'replicas' | 'redis';

/** What every use case works with. */
export interface EngineContext {
  readonly db: Database;
  /** Why Postgres refuses writes, while statements meet that; absent: nobody watches. */
  readonly outage?: () => string | null;
  readonly ready: ReadyQueue;
  /** To the other servers. */
  readonly bus: Bus;
  /** Of the ready queue and the bus. */
  readonly closeLinks: () => Promise<void>;
  readonly mode: EngineMode;
  /** Where processes share a database without Redis: this one's part in the ready queue that the leader keeps. */
  readonly replicas?: ReplicaReadyQueue;
  /** Names the Redis of the ready queue, so that servers find out whether they share it. */
  readonly place?: () => Promise<string | null>;
  readonly events: TaskEvents;
  /** Of all answers that are read or sent at once. */
  readonly answers: AnswerBudget;
  readonly settings: EngineSettings;
  /** Absent: the defaults. */
  readonly scaling?: ScalingSettings;
  /** Absent: this process evaluates no alerts. */
  readonly alerts?: AlertOptions;
  readonly log: Logger;
  /** Absent: no change of a task's state is logged. */
  readonly transitions?: TransitionLog;
  /** Absent: no parameter and no result is ever logged. */
  readonly payloads?: PayloadLog;
  /** In [0, 1). */
  readonly random: () => number;
  /** Null in production: the database's own clock counts. */
  readonly clock: Clock | null;
}

export function instant({ clock }: EngineContext): Instant {
  return clock === null ? null : new Date(clock.nowMs());
}

/** For what people look at, never for a decision. */
export function approximateNow({ clock, db }: EngineContext): Date {
  return new Date(clock === null ? db.nowMs() : clock.nowMs());
}

export function tell(context: EngineContext, event: Omit<TaskEvent, 'at'>): void {
  context.events.emit({ ...event, at: approximateNow(context) });
}

/** Of many that happened together. */
export function tellAll<Row>(
  context: EngineContext,
  rows: readonly Row[],
  toEvent: (row: Row, at: Date) => TaskEvent,
): void {
  const at = approximateNow(context);
  for (const row of rows) context.events.emit(toEvent(row, at));
}

/** For an event: the part of a cost that is counted for people. */
export function tokensIn(cost: Cost | null | undefined): Pick<TaskEvent, 'tokens'> {
  const tokens = cost?.tokens;
  return tokens === undefined ? {} : { tokens };
}

/** Of an attempt that ended: what its limits settle at, which is what was reserved where its worker says nothing. */
export function tokensUsed(
  reserved: Cost | null,
  usage: Cost | null | undefined,
): Pick<TaskEvent, 'tokens'> {
  const tokens = usage?.tokens ?? reserved?.tokens;
  return tokens === undefined ? {} : { tokens };
}

export function judgeDatabaseFailure(error: unknown): FlushFailure {
  if (error instanceof DatabaseAwayError || error instanceof NoPartitionError) return 'outage';
  return error instanceof LockedError ? 'locked' : 'culprit';
}

const lockedRetries = 8;
const lockedRetryMs = 100;

/** Tries again while somebody else holds a row of it: nothing was written before. */
export async function patiently<T>(write: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof LockedError) || tries > lockedRetries) throw error;
      await new Promise((resolve) => setTimeout(resolve, lockedRetryMs));
    }
  }
}

/** An outage becomes an answer that says when to come back; anything else stays what it is. */
export function asRefusal(error: unknown): unknown {
  if (error instanceof DatabaseAwayError) {
    const detail =
      `${error.message}. What was under way may or may not have been done: ` +
      'ask again in a second, with the same idempotency key.';
    return new SluiceError('unavailable', detail, { cause: error, retryAfterSeconds: 1 });
  }
  if (error instanceof NoPartitionError) {
    const detail = `${error.message} Nothing was changed. Try again.`;
    return new SluiceError('unavailable', detail, { cause: error, retryAfterSeconds: 1 });
  }
  if (error instanceof SlowReadError) {
    const detail =
      'Postgres took longer than 5 s, or too many reads wait for it. Ask for less: name a queue, a ' +
      'status or another filter, or a smaller limit; or ask again in a few seconds.';
    return new SluiceError('unavailable', detail, { cause: error, retryAfterSeconds: 5 });
  }
  if (error instanceof LockedError) {
    const detail = `${error.message}; nothing was changed. Try again.`;
    return new SluiceError('unavailable', detail, { cause: error, retryAfterSeconds: 1 });
  }
  return error;
}
