import { attemptErrorCodes, type AttemptError } from '../domain/attempt-error.js';
import type { WorkerId } from '../domain/ids.js';
import { maxDeferrals, maxReturns } from '../domain/retry-policy.js';
import { LockedError } from '../store/database.js';
import { expireTasks } from '../store/expire-tasks.js';
import type { AttemptRow } from '../store/find-attempts.js';
import { freeHeldWorkflows } from '../store/hold-workflows.js';
import { ensurePartitions } from '../store/partitions.js';
import { purgeKeys } from '../store/purge-keys.js';
import { purgeLevels } from '../store/bucket-levels.js';
import { releaseStuckWorkflows } from '../store/release-stuck-workflows.js';
import { buryLapsedWorkers, findOrphans, findOverdue } from '../store/sweep-attempts.js';
import { purgeWorkers } from '../store/workers.js';
import { instant, tell, type EngineContext } from './context.js';
import type { AttemptEnd, EndAttempts } from './end-attempts.js';
import type { Feeder } from './feeder.js';
import type { News } from './news.js';
import { failedAttempt } from './report.js';
import type { Retention } from './retention.js';
import type { Slots } from './slots.js';

const maxAttemptsAtOnce = 1_000;
const maxExpiredAtOnce = 1_000;
const maxSlotsAtOnce = 1_000;
const maxWorkflowsAtOnce = 200;
const maxKeysAtOnce = 1_000;
const daysAhead = 7;
const upkeepIntervalMs = 60_000;
const deadWorkersKeptMs = 24 * 3_600_000;
/** Longer than the longest window of a limit. */
const unusedLevelsKeptMs = 400 * 24 * 3_600_000;
/** The tasks of a dead worker come back one after the other, not all in one instant. */
const lapseSpacingMs = 2;
const maxLapseSpreadMs = 3_000;

export interface SweeperParts {
  readonly endAttempts: EndAttempts;
  readonly feeder: Feeder;
  readonly news: News;
  /** Since when workers could have been heard: Postgres reachable, this process not frozen. */
  readonly hearing: Hearing;
  readonly slots: Slots;
  readonly retention: Retention;
}

/** By the steady clock of this process, or that of a test. */
export class Hearing {
  readonly #nowMs: () => number;
  #sinceMs: number;

  constructor({ clock }: EngineContext) {
    this.#nowMs = () => (clock === null ? performance.now() : clock.nowMs());
    this.#sinceMs = this.#nowMs();
  }

  lost(): void {
    this.#sinceMs = this.#nowMs();
  }

  forMs(): number {
    return this.#nowMs() - this.#sinceMs;
  }
}

/** Repairs what crashed. Every tick is bounded, idempotent, and fenced like any other write. */
export class Sweeper {
  readonly #context: EngineContext;
  readonly #parts: SweeperParts;
  #workflowCursor: string | null = null;
  #nextUpkeepMs = 0;
  #lastTickMs = performance.now();
  /** Workers whose silence began while they could not be heard: their lapse costs no retry. */
  readonly #blameless = new Set<WorkerId>();

  constructor(context: EngineContext, parts: SweeperParts) {
    this.#context = context;
    this.#parts = parts;
  }

  async tick(): Promise<number> {
    this.#noticeOwnAbsence();
    await this.#unlessLocked(() => this.#buryWorkers());
    await this.#unlessLocked(() => this.#recoverOrphans());
    await this.#unlessLocked(() => this.#endOverdue());
    await this.#unlessLocked(() => this.#expire());
    await this.#parts.slots.compare(maxSlotsAtOnce);
    await this.#unlessLocked(() => this.#freeWorkflows());
    if (performance.now() >= this.#nextUpkeepMs) await this.upkeep();
    await this.#parts.retention.tick();
    return this.#context.settings.sweepIntervalMs;
  }

  /** A row that somebody holds delays its own repair until the next tick, and no other. */
  async #unlessLocked(repair: () => Promise<void>): Promise<void> {
    try {
      await repair();
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      this.#context.log.debug({ err: error }, 'a row is locked; the next sweep tries again');
    }
  }

  /** Rare and slow to matter: partitions of the days to come, expired keys, dead workers. */
  async upkeep(): Promise<void> {
    const { db } = this.#context;
    await ensurePartitions(db, daysAhead, instant(this.#context));
    await purgeKeys(db, maxKeysAtOnce, instant(this.#context));
    await purgeWorkers(db, deadWorkersKeptMs, instant(this.#context));
    await purgeLevels(db, unusedLevelsKeptMs, instant(this.#context));
    this.#nextUpkeepMs = performance.now() + upkeepIntervalMs;
  }

  /** A process that was frozen has not heard the heartbeats either. */
  #noticeOwnAbsence(): void {
    const { leaseMs, sweepIntervalMs } = this.#context.settings;
    const awayMs = performance.now() - this.#lastTickMs - sweepIntervalMs;
    if (awayMs > leaseMs / 2) this.#parts.hearing.lost();
    this.#lastTickMs = performance.now();
  }

  /**
   * A worker can't be blamed for silence while Postgres or this server was away: leases lapse only
   * after one full lease of reachable Postgres.
   */
  async #buryWorkers(): Promise<void> {
    const { db, log, settings } = this.#context;
    const { news, hearing } = this.#parts;
    if (hearing.forMs() < settings.leaseMs) return;
    const buried = await buryLapsedWorkers(db, settings.leaseMs, instant(this.#context));
    for (const { workerId, silentMs } of buried) {
      news.tell({ kind: 'buried', workerId });
      if (silentMs > hearing.forMs()) this.#blameless.add(workerId);
      log.warn({ workerId, silentMs }, 'worker was silent for longer than its lease');
    }
  }

  async #recoverOrphans(): Promise<void> {
    const { db, random } = this.#context;
    const orphans = await findOrphans(db, maxAttemptsAtOnce);
    const error: AttemptError = {
      code: attemptErrorCodes.workerLost,
      message: 'The worker was silent for longer than its lease.',
      retriable: true,
    };
    const spreadMs = Math.min(orphans.length * lapseSpacingMs, maxLapseSpreadMs);
    const ends = orphans.map((attempt) => {
      const blameless = this.#blameless.has(attempt.workerId) && attempt.deferrals < maxDeferrals;
      const end = blameless
        ? lapsedAtNoCost(attempt, error)
        : failedAttempt(attempt, error, random(), 'lapsed');
      return spread(end, random() * spreadMs);
    });
    await this.#parts.endAttempts.end(ends);
    // With more than one tick can take, the rest of theirs is still to come.
    if (orphans.length < maxAttemptsAtOnce) this.#blameless.clear();
  }

  /** After an absence of ours workers first have the time of a heartbeat to report what ended. */
  async #endOverdue(): Promise<void> {
    const { db, random, settings } = this.#context;
    if (this.#parts.hearing.forMs() < settings.heartbeatIntervalMs) return;
    const overdue = await findOverdue(
      db,
      maxAttemptsAtOnce,
      settings.timeoutGraceMs,
      instant(this.#context),
    );
    await this.#parts.endAttempts.end(
      overdue.map((attempt) =>
        attempt.status === 'executing' ? timedOut(attempt, random()) : neverStarted(attempt),
      ),
    );
  }

  async #expire(): Promise<void> {
    const { db, ready } = this.#context;
    const expired = await expireTasks(db, maxExpiredAtOnce, instant(this.#context));
    if (expired.length === 0) return;
    await ready.remove(expired.map(({ taskId }) => taskId));
    for (const { taskId, queue, taskType, priority, from } of expired) {
      const move = { from, to: 'failed', attempt: 0 } as const;
      const errorCode = attemptErrorCodes.capacity;
      tell(this.#context, { taskId, queue, taskType, priority, ...move, errorCode });
    }
    this.#parts.feeder.noteUnknownBacklog();
  }

  async #freeWorkflows(): Promise<void> {
    const { db, settings } = this.#context;
    const { timeoutGraceMs } = settings;
    await freeHeldWorkflows(db, maxWorkflowsAtOnce, timeoutGraceMs, instant(this.#context));
    const { windows, next } = await releaseStuckWorkflows(
      db,
      this.#workflowCursor,
      maxWorkflowsAtOnce,
      instant(this.#context),
    );
    this.#workflowCursor = next;
    for (const window of windows) this.#parts.feeder.noteBacklog(window);
  }
}

function timedOut(attempt: AttemptRow, random: number): AttemptEnd {
  const seconds = String(attempt.timeoutSeconds);
  const error: AttemptError = {
    code: attemptErrorCodes.timeout,
    message: `The attempt took longer than its ${seconds} s and its worker did not end it.`,
    retriable: true,
  };
  return failedAttempt(attempt, error, random, 'timed_out');
}

function neverStarted(attempt: AttemptRow): AttemptEnd {
  const { taskId, lease, timeoutSeconds, returns } = attempt;
  const error: AttemptError = {
    code: attemptErrorCodes.neverStarted,
    message: 'It was assigned to a worker that did not start it in time.',
    retriable: true,
  };
  if (returns >= maxReturns) {
    const reason = `assigned ${String(returns + 1)} times and never started`;
    return { taskId, lease, outcome: 'lapsed', error, next: { kind: 'dead_letter', reason } };
  }
  const next = { kind: 'pending', delayMs: 0, costsRetry: false, countsAs: 'return' } as const;
  return { taskId, lease, outcome: 'released', error, next: { ...next, timeoutSeconds } };
}

/** Counted like a deferral, so that a task that kills its server does not come back for ever. */
function lapsedAtNoCost(attempt: AttemptRow, error: AttemptError): AttemptEnd {
  const { taskId, lease, timeoutSeconds } = attempt;
  const next = { kind: 'pending', delayMs: 0, costsRetry: false, countsAs: 'deferral' } as const;
  return { taskId, lease, outcome: 'lapsed', error, next: { ...next, timeoutSeconds } };
}

function spread(end: AttemptEnd, delayMs: number): AttemptEnd {
  return end.next.kind === 'pending' ? { ...end, next: { ...end.next, delayMs } } : end;
}
