import type { WorkerId } from '../domain/ids.js';
import type { ClaimedTask } from '../protocol/api.js';
import type { TaskEvent } from '../protocol/events.js';
import type { TakeAnswer, Taken } from '../ready/ready-queue.js';
import { Batcher } from '../runtime/batcher.js';
import { claimTasks, type ClaimedRow } from '../store/claim-tasks.js';
import type { KnownAttempt } from '../store/finish-tasks.js';
import { instant, judgeDatabaseFailure, tellAll, type EngineContext } from './context.js';
import type { RecentWork } from './recent-work.js';
import type { Slots } from './slots.js';

/**
 * Less than the slots of a large worker: one half of it is claimed while the other half runs. In one
 * statement all of it would run together and then wait together.
 */
const maxClaimsAtOnce = 400;

/** What was taken longer ago than this is given up: its slot may be given to others soon. */
const staleMs = 5_000;

type TakenEntries = TakeAnswer & { kind: 'taken' };

interface Wish {
  readonly entry: Taken;
  readonly generation: number;
  readonly takenMs: number;
  readonly workerId: WorkerId;
  readonly start: boolean;
}

interface Granted {
  readonly entry: Taken;
  readonly start: boolean;
  readonly row: ClaimedRow;
}

/** Turns taken entries into leases. Postgres decides: an entry it refuses was stale. */
export class Claim {
  readonly #context: EngineContext;
  readonly #slots: Slots;
  readonly #recent: RecentWork;
  readonly #batcher: Batcher<Wish, ClaimedRow | null>;

  constructor(context: EngineContext, slots: Slots, recent: RecentWork) {
    this.#context = context;
    this.#slots = slots;
    this.#recent = recent;
    this.#batcher = new Batcher({
      flush: (wishes) => this.#write(wishes),
      maxItems: maxClaimsAtOnce,
      concurrency: 2,
      judge: judgeDatabaseFailure,
    });
  }

  async claim(
    workerId: WorkerId,
    { entries, generation }: TakenEntries,
    start: boolean,
  ): Promise<ClaimedTask[]> {
    const takenMs = performance.now();
    const claims = await this.#batcher.settleAll(
      entries.map((entry) => ({ entry, generation, takenMs, workerId, start })),
    );
    const claimed: ClaimedTask[] = [];
    const failed: { readonly entry: Taken; readonly error: unknown }[] = [];
    for (const [index, entry] of entries.entries()) {
      const claim = claims[index];
      if (claim?.kind === 'failed') failed.push({ entry, error: claim.error });
      else if (claim?.outcome) claimed.push(toClaimedTask(claim.outcome, entry));
    }
    // Committed or not, nobody knows: the sweeper offers again what is still queued.
    if (failed.length > 0) await this.#context.ready.refund(failed.map(({ entry }) => entry));
    if (failed[0] !== undefined && claimed.length === 0) throw failed[0].error;
    return claimed;
  }

  async #write(wishes: readonly Wish[]): Promise<(ClaimedRow | null)[]> {
    const { db, ready, settings } = this.#context;
    const generation = Math.max(...wishes.map((wish) => wish.generation));
    const oldestMs = performance.now() - staleMs;
    const claims = wishes
      .filter((wish) => wish.generation === generation && wish.takenMs >= oldestMs)
      .map(({ entry: { taskId }, workerId, start }) => ({
        taskId,
        workerId,
        start,
        known: this.#recent.takeTask(taskId),
      }));
    const rows = await claimTasks(
      db,
      claims,
      generation,
      settings.unstartedMs,
      instant(this.#context),
    );
    const answers = handOut(wishes, rows);
    const granted: Granted[] = [];
    const refused: Taken[] = [];
    for (const [index, { entry, start }] of wishes.entries()) {
      const row = answers[index] ?? null;
      if (row === null) {
        refused.push(entry);
        continue;
      }
      granted.push({ entry, start, row });
      if (start && row.workflowId === null) this.#recent.claimed(row.lease, toKnown(row, entry));
    }
    await this.#slots.confirm(granted.map(({ entry }) => entry));
    if (refused.length > 0) await ready.refund(refused);
    tellAll(this.#context, granted, toClaimedEvent);
    return answers;
  }
}

function toClaimedEvent({ entry, start, row }: Granted, at: Date): TaskEvent {
  return {
    taskId: row.taskId,
    queue: row.queue,
    taskType: row.taskType,
    priority: row.priority,
    from: 'queued',
    to: start ? 'executing' : 'assigned',
    attempt: row.attempt,
    waitMs: row.waitedMs,
    effectivePriority: entry.effectivePriority,
    at,
  };
}

/** A row goes to one wish of the worker that got it: after a rebuild two may wish for one task. */
function handOut(wishes: readonly Wish[], rows: readonly ClaimedRow[]): (ClaimedRow | null)[] {
  const left = new Map(rows.map((row) => [row.taskId, row]));
  return wishes.map(({ entry: { taskId }, workerId }) => {
    const row = left.get(taskId);
    if (row?.workerId !== workerId) return null;
    left.delete(taskId);
    return row;
  });
}

/** One that is assigned is left out: it may be started in between. */
function toKnown(row: ClaimedRow, { lane }: Taken): KnownAttempt {
  const { priority, cost, workerId, attempt, lapsesAt, timeoutSeconds } = row;
  const startedAtMs = lapsesAt.getTime() - timeoutSeconds * 1000;
  return { lane, priority, cost, workerId, attempt, startedAtMs };
}

function toClaimedTask(row: ClaimedRow, { effectivePriority }: Taken): ClaimedTask {
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
    traceId: row.traceId,
    deadline: row.lapsesAt,
  };
}
