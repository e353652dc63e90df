import { attemptErrorCodes, type AttemptError } from '../domain/attempt-error.js';
import { maxDeferrals, maxReturns, type RetryLimits } from '../domain/retry-policy.js';
import { LockedError } from '../store/database.js';
import { expireTasks } from '../store/expire-tasks.js';
import type { AttemptRow } from '../store/find-attempts.js';
import { freeHeldWorkflows } from '../store/hold-workflows.js';
import { purgeServers } from '../store/hearing.js';
import { purgeKeys } from '../store/purge-keys.js';
import { purgeLevels } from '../store/bucket-levels.js';
import { forgetSettled } from '../store/unsettled.js';
import { purgeSubmissions } from '../store/submission-limits.js';
import { releaseStuckWorkflows } from '../store/release-stuck-workflows.js';
import {
  buryLapsedWorkers,
  findOrphans,
  findOverdue,
  isSteady,
  type OrphanRow,
} from '../store/sweep-attempts.js';
import { lookForRepairs } from '../store/sweep-look.js';
import { purgeWorkers } from '../store/workers.js';
import { instant, tell, type EngineContext } from './context.js';
import type { AttemptEnd, EndAttempts } from './end-attempts.js';
import type { Feeder } from './feeder.js';
import type { Hearing } from './hearing.js';
import type { LostEntries } from './lost-entries.js';
import type { News } from './news.js';
import { failedAttempt } from './report.js';
import type { Slots } from './slots.js';
import type { Tallies } from './tallies.js';

const maxAttemptsAtOnce = 1_000;
const maxExpiredAtOnce = 1_000;
const maxSlotsAtOnce = 1_000;
const maxWorkflowsAtOnce = 200;
const maxKeysAtOnce = 1_000;
const maxSubmittersAtOnce = 1_000;
/** A result that something between worker and server never lets through does not keep its task for ever. */
const undeliveredMs = 3_600_000;
const deadWorkersKeptMs = 24 * 3_600_000;
/** Longer than the longest window of a limit. */
const unusedLevelsKeptMs = 400 * 24 * 3_600_000;
/** The tasks of a dead worker come back one after the other, not all in one instant. */
const lapseSpacingMs = 2;
const maxLapseSpreadMs = 3_000;

export interface SweeperParts {
  readonly endAttempts: EndAttempts;
  readonly feeder: Feeder;
  readonly lostEntries: LostEntries;
  readonly news: News;
  readonly hearing: Hearing;
  readonly slots: Slots;
  readonly tallies: Pick<Tallies, 'workerFailures'>;
}

/**
 * Repairs what crashed. Every tick is bounded, idempotent, and fenced like any other write. One look
 * says which repairs have anything to do, so that a tick with nothing to do is one statement.
 */
export class Sweeper {
  readonly #context: EngineContext;
  readonly #parts: SweeperParts;
  #workflowCursor: string | null = null;
  #nextUpkeepMs = 0;

  constructor(context: EngineContext, parts: SweeperParts) {
    this.#context = context;
    this.#parts = parts;
  }

  async tick(): Promise<number> {
    const { db, settings } = this.#context;
    const look = await lookForRepairs(db, settings.leaseMs, instant(this.#context));
    if (look.line) this.#parts.lostEntries.beginLap();
    let { orphans } = look;
    await this.#if(look.lapsedWorkers, async () => {
      orphans = (await this.#buryWorkers()) > 0 || orphans;
    });
    await this.#if(orphans, () => this.#recoverOrphans());
    await this.#if(look.overdue, () => this.#endOverdue());
    await this.#if(look.expired, () => this.#expire());
    await this.#parts.slots.compare(maxSlotsAtOnce);
    await this.#if(look.keptPlaces, () => this.#freePlaces());
    await this.#if(look.workflows, () => this.#releaseStuck());
    if (performance.now() >= this.#nextUpkeepMs) await this.#upkeep();
    return settings.sweepIntervalMs;
  }

  /** A row that somebody holds delays its own repair until the next tick, and no other. */
  async #if(isNeeded: boolean, repair: () => Promise<void>): Promise<void> {
    if (!isNeeded) return;
    try {
      await repair();
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      this.#context.log.debug({ err: error }, 'a row is locked; the next sweep tries again');
    }
  }

  /** Rare and slow to matter: what expired, dead workers. */
  async #upkeep(): Promise<void> {
    const { db, settings } = this.#context;
    const keys = await purgeKeys(db, maxKeysAtOnce, instant(this.#context));
    await purgeWorkers(db, deadWorkersKeptMs, instant(this.#context));
    await purgeServers(db, deadWorkersKeptMs, instant(this.#context));
    await forgetSettled(db);
    await purgeLevels(db, unusedLevelsKeptMs, instant(this.#context));
    const submitters = await purgeSubmissions(db, maxSubmittersAtOnce, instant(this.#context));
    // More of them may expire in a minute than go at once.
    const isDone = keys < maxKeysAtOnce && submitters < maxSubmittersAtOnce;
    const waitMs = isDone ? settings.upkeepIntervalMs : 0;
    this.#nextUpkeepMs = performance.now() + waitMs;
  }

  async #buryWorkers(): Promise<number> {
    const { db, log, settings } = this.#context;
    const { news, hearing } = this.#parts;
    const { leaseMs } = settings;
    const { serverId } = hearing;
    const steadyMs = hearing.steadyMs();
    const burial = { serverId, leaseMs, except: hearing.locked(), steadyMs };
    const buried = await buryLapsedWorkers(db, burial, instant(this.#context));
    for (const { workerId, silentMs } of buried) {
      news.tell({ kind: 'buried', workerId });
      log.warn(
        { worker_id: workerId, silent_ms: Math.round(silentMs) },
        'worker was silent for longer than its lease',
      );
    }
    this.#parts.tallies.workerFailures.add('heartbeat_lapsed', buried.length);
    return buried.length;
  }

  async #recoverOrphans(): Promise<void> {
    const { db, random, settings } = this.#context;
    const { tasks } = settings;
    const orphans = await findOrphans(db, maxAttemptsAtOnce);
    const spreadMs = Math.min(orphans.length * lapseSpacingMs, maxLapseSpreadMs);
    const ends = orphans.map((orphan) =>
      spread(lapsed(orphan, random(), tasks), random() * spreadMs),
    );
    await this.#parts.endAttempts.end(ends);
  }

  /** After an absence of ours workers first have the time of a heartbeat to report what ended. */
  async #endOverdue(): Promise<void> {
    const { db, random, settings } = this.#context;
    const { heartbeatIntervalMs, leaseMs, timeoutGraceMs, tasks } = settings;
    const { hearing } = this.#parts;
    const steadyMs = hearing.steadyMs();
    if (hearing.forMs() < heartbeatIntervalMs && !isSteady(steadyMs, leaseMs)) return;
    const { serverId } = hearing;
    const proven = { serverId, leaseMs, heardForMs: heartbeatIntervalMs, steadyMs };
    const terms = { ...proven, graceMs: timeoutGraceMs, undeliveredMs, step: hearing.step() };
    const overdue = await findOverdue(db, maxAttemptsAtOnce, terms, instant(this.#context));
    await this.#parts.endAttempts.end(
      overdue.map((attempt) =>
        attempt.status === 'executing' ? timedOut(attempt, random(), tasks) : neverStarted(attempt),
      ),
    );
  }

  async #expire(): Promise<void> {
    const { db, ready } = this.#context;
    const expired = await expireTasks(db, maxExpiredAtOnce, instant(this.#context));
    if (expired.length === 0) return;
    await ready.remove(expired.map(({ taskId }) => taskId));
    for (const { taskId, queue, taskType, priority, from, trace } of expired) {
      const move = { from, to: 'failed', attempt: 0, trace } as const;
      const errorCode = attemptErrorCodes.capacity;
      tell(this.#context, { taskId, queue, taskType, priority, ...move, errorCode });
    }
    this.#parts.feeder.noteDue(0);
  }

  async #freePlaces(): Promise<void> {
    const { db, settings } = this.#context;
    const { timeoutGraceMs } = settings;
    await freeHeldWorkflows(db, maxWorkflowsAtOnce, timeoutGraceMs, instant(this.#context));
  }

  async #releaseStuck(): Promise<void> {
    const { released, next } = await releaseStuckWorkflows(
      this.#context.db,
      this.#workflowCursor,
      maxWorkflowsAtOnce,
      instant(this.#context),
    );
    this.#workflowCursor = next;
    if (released > 0) this.#parts.feeder.noteDue(0);
  }
}

/** At no cost where the worker could not have been heard, unless that happens again and again. */
function lapsed(orphan: OrphanRow, random: number, limits: RetryLimits): AttemptEnd {
  const error: AttemptError = {
    code: attemptErrorCodes.workerLost,
    message: 'The worker was silent for longer than its lease.',
    retriable: true,
  };
  return orphan.unheard && orphan.deferrals < maxDeferrals
    ? lapsedAtNoCost(orphan, error)
    : failedAttempt(orphan, error, random, limits, 'lapsed');
}

function timedOut(attempt: AttemptRow, random: number, limits: RetryLimits): AttemptEnd {
  const seconds = String(attempt.timeoutSeconds);
  const error: AttemptError = {
    code: attemptErrorCodes.timeout,
    message: `The attempt took longer than its ${seconds} s and its worker did not end it.`,
    retriable: true,
  };
  return failedAttempt(attempt, error, random, limits, 'timed_out');
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
