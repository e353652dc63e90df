/** All that is known of a run when it is over, by who saw it. Times in milliseconds of one clock. */
export interface ChaosHistory {
  /** By the driver: submits that were answered. */
  readonly acknowledged: readonly Acknowledged[];
  /** By the driver: tasks it sent a cancel for, and whether that was answered with "cancelled". */
  readonly cancels: ReadonlyMap<string, 'asked' | 'acknowledged'>;
  /** By the database: every row of every task. */
  readonly rows: readonly TaskRow[];
  /** By the workers: a handler began. */
  readonly begins: readonly Begin[];
  /** By the workers: the server accepted a result as the completion of its task. */
  readonly completions: readonly Completion[];
  readonly faults: readonly FaultSpan[];
  readonly limits: readonly RateBound[];
  /** When they were lifted, so that what had gathered behind them could end. */
  readonly limitsUntil: number;
  readonly slots: readonly SlotBound[];
  /** Lower bounds that were set while Redis hung, by the answers to the driver. */
  readonly retunes: readonly Retune[];
  /** Which server a worker talks to. */
  readonly serverOf: ReadonlyMap<string, string>;
}

export interface Acknowledged {
  readonly key: string;
  readonly taskId: string;
  /** Its handler fails in every attempt up to this one. */
  readonly fails: number;
  readonly workflow: { readonly id: string; readonly place: number } | null;
}

export interface TaskRow {
  readonly taskId: string;
  readonly key: string | null;
  readonly queue: string;
  readonly status: string;
  readonly seq: number;
  readonly endedAt: number | null;
  /** With which it was completed. */
  readonly lease: string | null;
  /** Which attempt its result is of, by the handler; null: it has none. */
  readonly resultOf: number | null;
  readonly attempts: readonly Attempt[];
}

export interface Attempt {
  readonly attempt: number;
  /** The name of its worker; null: unknown. */
  readonly worker: string | null;
  readonly from: number;
  /** Null: it has not ended. */
  readonly to: number | null;
  readonly outcome: string;
}

export interface Begin {
  readonly taskId: string;
  readonly attempt: number;
  readonly worker: string;
  readonly at: number;
}

export interface Completion {
  readonly taskId: string;
  readonly lease: string;
}

/** From the fault until everything that it met was up again. */
export interface FaultSpan {
  readonly kind: string;
  /** `server-0`, `worker-3`, `redis` or `postgres`. */
  readonly target: string;
  readonly from: number;
  readonly to: number;
}

export interface RateBound {
  readonly queue: string;
  /** In any window: the rate, and the burst where there is one. */
  readonly most: number;
  readonly windowMs: number;
  /** So many more than the rate gives, in a stretch of any length; null: there is no burst. */
  readonly burst: number | null;
}

export interface SlotBound {
  readonly queue: string;
  readonly most: number;
}

/** From the answer to the change until the next change was sent, no start may exceed `most` at once. */
export interface Retune extends SlotBound {
  readonly from: number;
  readonly to: number;
}

export type Rule =
  | 'lost'
  | 'completed twice'
  | 'result not kept'
  | 'one key, two tasks'
  | 'over the limit'
  | 'too many at once'
  | 'change not kept'
  | 'out of order'
  | 'two members at once'
  | 'run again without a fault'
  | 'begun twice'
  | 'cancel not kept'
  | 'ended for no reason';

export interface Finding {
  readonly rule: Rule;
  readonly detail: string;
}

export function finding(rule: Rule, detail: string): Finding {
  return { rule, detail };
}
