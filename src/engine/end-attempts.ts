import { grantIn } from '../domain/lease.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Held } from '../protocol/workers-api.js';
import { endAttempts, type AttemptEnd, type EndedRow } from '../store/end-attempts.js';
import { instant, tell, tokensUsed, type EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import type { Slots } from './slots.js';

export type { AttemptEnd, EndedRow } from '../store/end-attempts.js';

const maxMessageLength = 500;

/** `usage`: what it really cost although it failed, when its worker said so. */
export type ReportedEnd = AttemptEnd & { readonly usage?: Cost | null };

/** Ends attempts that did not succeed: one fenced write, then all who need to know are told. */
export class EndAttempts {
  readonly #context: EngineContext;
  readonly #feeder: Feeder;
  readonly #slots: Slots;

  constructor(context: EngineContext, feeder: Feeder, slots: Slots) {
    this.#context = context;
    this.#feeder = feeder;
    this.#slots = slots;
  }

  /** Answers with those whose lease was still good. */
  async end(ends: readonly ReportedEnd[]): Promise<readonly EndedRow[]> {
    if (ends.length === 0) return [];
    const rows = await endAttempts(this.#context.db, ends, instant(this.#context));
    const byLease = new Map(ends.map((end) => [end.lease, end]));
    const finished = rows.map(({ taskId, lease, queue, cost }) => ({
      taskId,
      grant: grantIn(lease),
      queue,
      reserved: cost,
      usage: byLease.get(lease)?.usage ?? null,
    }));
    await this.#slots.free(finished);
    for (const row of rows) {
      const end = byLease.get(row.lease);
      if (end !== undefined) this.#note(row, end);
    }
    return rows;
  }

  #note(row: EndedRow, end: ReportedEnd): void {
    const { taskId, queue, taskType, priority, from, to, attempt, runMs, workerId, trace } = row;
    const { error, next } = end;
    if (next.kind === 'pending') this.#feeder.noteDue(next.delayMs);
    if (row.released) this.#feeder.noteDue(0);
    tell(this.#context, {
      taskId,
      queue,
      taskType,
      priority,
      from,
      to,
      attempt,
      workerId,
      trace,
      outcome: end.outcome,
      durationMs: runMs,
      ...tokensUsed(row.cost, end.usage),
      ...(error === null
        ? {}
        : { errorCode: error.code, errorMessage: error.message.slice(0, maxMessageLength) }),
      ...(next.kind === 'dead_letter' ? { reason: next.reason } : { retryInMs: next.delayMs }),
    });
  }
}

/** Back to the queue at no cost: nothing went wrong, it just did not run here. */
export function released(held: Held, timeoutSeconds: number): AttemptEnd {
  const next = { kind: 'pending', delayMs: 0, costsRetry: false, countsAs: null } as const;
  const { taskId, lease } = held;
  return { taskId, lease, outcome: 'released', error: null, next: { ...next, timeoutSeconds } };
}
