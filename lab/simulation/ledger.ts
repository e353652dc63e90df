import type { Lease, TaskId, WorkerId } from '../../src/domain/ids.js';

/** One lease that reached a worker. */
export interface Delivered {
  readonly taskId: TaskId;
  readonly lease: Lease;
  readonly queue: string;
  readonly workerId: WorkerId;
  readonly cost: number;
  /** When the ready queue granted it. */
  readonly takenMs: number;
  /** When its worker must have given it up, whatever the handler does. */
  readonly deadlineMs: number;
  /** Its worker has said that it no longer works on it, or can't. */
  hasLetGo: boolean;
}

export interface Reported {
  readonly taskId: TaskId;
  readonly lease: Lease;
  /** Null: a success. */
  readonly code: string | null;
}

/** What the callers of Sluice know: what was acknowledged, what they hold, what they have said. */
export class Ledger {
  readonly acknowledged = new Set<TaskId>();
  readonly taskOfKey = new Map<string, TaskId>();
  readonly delivered = new Map<Lease, Delivered>();
  readonly reported = new Map<string, Reported>();
  /** In tokens, of those that were acknowledged. */
  readonly costOf = new Map<TaskId, number>();
  /** By worker id: when it last sent a heartbeat that was acknowledged. */
  readonly heardMs = new Map<string, number>();

  /** A word that goes out with a report, and says later whose report it was. */
  sign(report: Reported): string {
    const word = `report-${this.reported.size + 1}`;
    this.reported.set(word, report);
    return word;
  }
}
