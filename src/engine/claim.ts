import { attemptErrorCodes, type AttemptError } from '../domain/attempt-error.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import { traceFromText } from '../domain/trace.js';
import type { TaskEvent } from '../protocol/events.js';
import { bounds } from '../protocol/bounds.js';
import type { ClaimedTask } from '../protocol/workers-api.js';
import type { TakeAnswer, Taken } from '../ready/ready-queue.js';
import { Batcher, type Settled } from '../runtime/batcher.js';
import { claimTasks, type Claim as WantedClaim, type ClaimedRow } from '../store/claim-tasks.js';
import type { KnownAttempt } from '../store/finish-tasks.js';
import { Arrivals, type Arriving, type EarlyClaims } from './arrivals.js';
import { instant, judgeDatabaseFailure, tellAll, tokensIn, type EngineContext } from './context.js';
import type { AttemptEnd, EndAttempts } from './end-attempts.js';
import { newLease } from './new-lease.js';
import type { PollWaiters } from './poll-waiters.js';
import type { RecentWork } from './recent-work.js';
import type { Slots } from './slots.js';
import { staleMs, type Wish } from './wish.js';

/**
 * Less than the slots of a large worker: one half of it is claimed while the other half runs. In one
 * statement all of it would run together and then wait together.
 */
const maxClaimsAtOnce = 400;
/** Of tasks that are as large as tasks may be, so many fit into one answer. */
const alwaysFit = bounds.answerBytes / bounds.taskBytes;
/** How much the last claim counts for what tasks are thought to weigh. */
const weightOfLast = 0.2;

type TakenEntries = TakeAnswer & { kind: 'taken' };

interface Granted {
  readonly wish: Wish;
  readonly row: ClaimedRow;
}

export interface ClaimParts {
  readonly endAttempts: EndAttempts;
  readonly slots: Slots;
  readonly recent: RecentWork;
  readonly waiters: PollWaiters;
  /** These were taken and are still in line. */
  readonly offerAgain: (taskIds: readonly TaskId[]) => Promise<void>;
  /** Postgres refused these, and their places were given back. */
  readonly onRefused: (entries: readonly Taken[]) => void;
}

export interface Claimed {
  readonly tasks: readonly ClaimedTask[];
  /** Claimed beyond the bytes of one answer: to be given back. */
  readonly over: readonly ClaimedTask[];
}

/** Turns taken entries into leases. Postgres decides: an entry it refuses was stale. */
export class Claim {
  readonly #context: EngineContext;
  readonly #onRefused: ClaimParts['onRefused'];
  readonly #slots: Slots;
  readonly #recent: RecentWork;
  readonly #endAttempts: EndAttempts;
  readonly #arrivals: Arrivals;
  readonly #batcher: Batcher<Wish, ClaimedRow | null>;
  readonly #offerAgain: ClaimParts['offerAgain'];
  #bytesPerTask = 0;

  constructor(
    context: EngineContext,
    { endAttempts, slots, recent, waiters, offerAgain, onRefused }: ClaimParts,
  ) {
    this.#context = context;
    this.#endAttempts = endAttempts;
    this.#onRefused = onRefused;
    this.#slots = slots;
    this.#recent = recent;
    this.#offerAgain = offerAgain;
    this.#arrivals = new Arrivals(context, waiters);
    this.#batcher = new Batcher({
      flush: (wishes) => this.#write(wishes),
      maxItems: maxClaimsAtOnce,
      concurrency: 2,
      judge: judgeDatabaseFailure,
    });
  }

  /** As many as fit into one answer, by the size of those that were claimed last. */
  get mostAtOnce(): number {
    const fitting = Math.floor(bounds.answerBytes / Math.max(1, this.#bytesPerTask));
    return Math.min(bounds.pollTasks, Math.max(alwaysFit, fitting));
  }

  /** Piece by piece, until an answer is full; what is left of the entries is offered again. */
  async claim(
    workerId: WorkerId,
    taken: TakenEntries,
    start: boolean,
    takenMs: number,
  ): Promise<Claimed> {
    const tasks: ClaimedTask[] = [];
    const over: ClaimedTask[] = [];
    let bytes = 0;
    for (let from = 0; from < taken.entries.length; from += maxClaimsAtOnce) {
      const entries = taken.entries.slice(from, from + maxClaimsAtOnce);
      if (bytes >= bounds.answerBytes) {
        await this.#putBack(entries);
        continue;
      }
      const piece = this.#claimPiece(workerId, { ...taken, entries }, start, takenMs);
      const rows = await piece.catch((error: unknown) => {
        // What was claimed before is claimed, and answered.
        if (tasks.length === 0) throw error;
        return [];
      });
      for (const row of rows) {
        (bytes < bounds.answerBytes ? tasks : over).push(row.task);
        bytes += row.bytes;
      }
    }
    return { tasks, over };
  }

  async #claimPiece(
    workerId: WorkerId,
    { entries, generation }: TakenEntries,
    start: boolean,
    takenMs: number,
  ): Promise<{ readonly task: ClaimedTask; readonly bytes: number }[]> {
    const claims = await this.#settle(
      entries.map((entry) => ({ entry, generation, takenMs, workerId, start })),
    );
    const claimed: { readonly task: ClaimedTask; readonly bytes: number }[] = [];
    const failed: { readonly entry: Taken; readonly error: unknown }[] = [];
    for (const [index, entry] of entries.entries()) {
      const claim = claims[index];
      if (claim?.kind === 'failed') failed.push({ entry, error: claim.error });
      else if (claim?.outcome) {
        const { bytes } = claim.outcome;
        const task = toClaimedTask(claim.outcome, entry);
        if (task !== null) claimed.push({ task, bytes });
      }
    }
    // Committed or not, nobody knows: the sweeper offers again what is still queued.
    if (failed.length > 0) await this.#context.ready.refund(failed.map(({ entry }) => entry));
    if (failed[0] !== undefined && claimed.length === 0) throw failed[0].error;
    return claimed;
  }

  /** Has those who wait look at tasks that are about to be written. */
  announce(tasks: readonly Arriving[]): Promise<EarlyClaims> {
    return this.#arrivals.announce(tasks);
  }

  /** They were written; those without a row were not written as claimed. */
  async settleEarly(claims: EarlyClaims, rows: ReadonlyMap<TaskId, ClaimedRow>): Promise<void> {
    if (claims.size === 0) return;
    const all = [...claims.values()];
    await this.#arrivals.refuse(all.filter(({ taskId }) => !rows.has(taskId)));
    const granted: Granted[] = [];
    for (const { taskId, wish } of all) {
      const row = rows.get(taskId);
      if (row !== undefined) granted.push({ wish, row });
    }
    this.#noteGranted(granted);
    for (const { taskId, settle } of all) settle(rows.get(taskId) ?? null);
  }

  /** What is about to be written is claimed by whoever writes it. */
  async #settle(
    wishes: readonly Wish[],
  ): Promise<readonly (Settled<ClaimedRow | null> | undefined)[]> {
    const isArriving = ({ entry }: Wish): boolean => this.#arrivals.has(entry.taskId);
    if (!wishes.some(isArriving)) return this.#batcher.settleAll(wishes);
    const early = wishes.map((wish) => (isArriving(wish) ? this.#arrivals.join(wish) : null));
    const others = await this.#batcher.settleAll(wishes.filter((_, n) => early[n] === null));
    const rest = others.values();
    return Promise.all(
      early.map(async (row) =>
        row === null ? rest.next().value : ({ kind: 'done', outcome: await row } as const),
      ),
    );
  }

  #noteGranted(granted: readonly Granted[]): void {
    for (const { wish, row } of granted) {
      if (wish.start && row.workflowId === null) {
        this.#recent.claimed(row.lease, toKnown(row, wish.entry));
      }
    }
    this.#slots.confirmSoon(granted.map(({ wish }) => wish.entry));
    tellAll(this.#context, granted, toClaimedEvent);
  }

  async #write(wishes: readonly Wish[]): Promise<(ClaimedRow | null)[]> {
    const { db, ready, settings } = this.#context;
    const generation = Math.max(...wishes.map((wish) => wish.generation));
    const oldestMs = performance.now() - staleMs;
    const wanted = wishes.map((wish) =>
      wish.generation === generation && wish.takenMs >= oldestMs ? this.#wanted(wish) : null,
    );
    const claims = wanted.filter((claim) => claim !== null);
    const now = instant(this.#context);
    const rows = await claimTasks(db, claims, generation, settings.unstartedMs, now);
    const isFull = this.#weigh(rows) >= bounds.answerBytes;
    const outcomes = handOut(wanted, rows);
    const granted: Granted[] = [];
    const refused: Taken[] = [];
    for (const [index, wish] of wishes.entries()) {
      const row = outcomes[index] ?? null;
      if (row === null) refused.push(wish.entry);
      else granted.push({ wish, row });
    }
    this.#noteGranted(granted);
    if (refused.length > 0) {
      await (isFull ? this.#putBack(refused) : ready.refund(refused));
      this.#onRefused(refused);
    }
    if (rows.some(isWithoutInput)) await this.#endWithoutInput(rows.filter(isWithoutInput));
    return outcomes;
  }

  #weigh(rows: readonly ClaimedRow[]): number {
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
    if (rows.length === 0) return 0;
    // At once when they did not fit: what was taken and not claimed was measured in vain.
    const weight = bytes >= bounds.answerBytes ? 1 : weightOfLast;
    this.#bytesPerTask += (bytes / rows.length - this.#bytesPerTask) * weight;
    return bytes;
  }

  /** They were not asked for, or may not have been claimed for want of room in the answer. */
  async #putBack(entries: readonly Taken[]): Promise<void> {
    await this.#context.ready.refund(entries);
    await this.#offerAgain(entries.map(({ taskId }) => taskId));
  }

  /**
   * A task whose parameters are missing is claimed and never handed out: its attempt ends here. Should
   * that fail, no heartbeat names the attempt, and it goes back like any answer that was lost.
   */
  async #endWithoutInput(rows: readonly ClaimedRow[]): Promise<void> {
    try {
      await this.#endAttempts.end(rows.map(withoutInput));
    } catch (error) {
      this.#context.log.error({ err: error }, 'attempts without parameters could not be ended');
    }
  }

  #wanted({ entry: { taskId, grant }, workerId, start }: Wish): WantedClaim {
    const known = this.#recent.takeTask(taskId);
    return { taskId, workerId, lease: newLease(grant), start, known };
  }
}

function isWithoutInput({ parameters }: ClaimedRow): boolean {
  return parameters === null;
}

function withoutInput({ taskId, lease }: ClaimedRow): AttemptEnd {
  const reason = 'its parameters are missing';
  const error: AttemptError = {
    code: attemptErrorCodes.inputMissing,
    message: 'The parameters of the task are not in the database. Submit it again.',
    retriable: false,
  };
  return { taskId, lease, outcome: 'failed', error, next: { kind: 'dead_letter', reason } };
}

function toClaimedEvent({ wish: { entry, start, takenMs }, row }: Granted, at: Date): TaskEvent {
  return {
    taskId: row.taskId,
    // One text for all of a lane: whoever counts by queue keeps it.
    queue: entry.lane.queue,
    taskType: entry.lane.taskType,
    priority: row.priority,
    from: 'queued',
    to: start ? 'executing' : 'assigned',
    attempt: row.attempt,
    workerId: row.workerId,
    trace: row.trace,
    waitMs: row.waitedMs,
    assignmentMs: Math.max(0, performance.now() - takenMs),
    effectivePriority: entry.effectivePriority,
    ...tokensIn(row.cost),
    at,
  };
}

/** By the lease that each has: after a rebuild two may wish for one task. */
function handOut(
  wanted: readonly (WantedClaim | null)[],
  rows: readonly ClaimedRow[],
): (ClaimedRow | null)[] {
  const rowOf = new Map(rows.map((row) => [row.lease, row]));
  return wanted.map((claim) => (claim === null ? null : (rowOf.get(claim.lease) ?? null)));
}

/** One that is assigned is left out: it may be started in between. */
function toKnown(row: ClaimedRow, { lane }: Taken): KnownAttempt {
  const { priority, cost, workerId, attempt, trace, lapsesAt, timeoutSeconds } = row;
  const startedAtMs = lapsesAt.getTime() - timeoutSeconds * 1000;
  return { lane, priority, cost, workerId, attempt, trace, startedAtMs };
}

/** Null: its attempt has ended already. */
function toClaimedTask(row: ClaimedRow, { effectivePriority }: Taken): ClaimedTask | null {
  if (row.parameters === null) return null;
  return {
    taskId: row.taskId,
    taskType: row.taskType,
    queue: row.queue,
    parameters: row.parameters,
    timeoutSeconds: row.timeoutSeconds,
    attempt: row.attempt,
    lease: row.lease,
    priority: row.priority,
    effectivePriority,
    retryCount: row.retryCount,
    workflowId: row.workflowId,
    ...traceFromText(row.trace, row.taskId),
    deadline: row.lapsesAt,
    waitedSeconds: Math.max(0, Math.round(row.inLineMs)) / 1000,
  };
}
