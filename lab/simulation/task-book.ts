import { canMove, hasEnded, isLeased } from '../../src/domain/task-state.js';
import type { Written } from './audit.js';
import type { Ledger } from './ledger.js';
import type { Trace } from './trace.js';
import { Violation } from './violation.js';

export interface TaskBookOptions {
  readonly ledger: Ledger;
  readonly trace: Trace;
  readonly leaseMs: number;
  readonly nowMs: () => number;
}

/** A task, as the last change left it, and in how many rows. */
export type Task = Written & { readonly rows: { living: number; history: number } };

/** Every task there is, kept from what was written, and what must hold for each change of it. */
export class TaskBook {
  readonly #options: TaskBookOptions;
  readonly #tasks = new Map<string, Task>();
  readonly #moves: Record<string, number> = {};
  /** Every lease ever given, and the task it is of. */
  readonly #leases = new Map<string, string>();

  constructor(options: TaskBookOptions) {
    this.#options = options;
  }

  get tasks(): readonly Task[] {
    return [...this.#tasks.values()];
  }

  /** How often tasks went from one state to another. */
  get moves(): Readonly<Record<string, number>> {
    return this.#moves;
  }

  find(taskId: string): Task | null {
    return this.#tasks.get(taskId) ?? null;
  }

  isLive(lease: string): boolean {
    const task = this.#tasks.get(this.#leases.get(lease) ?? '');
    return task?.lease === lease && isLeased(task.status);
  }

  wasGiven(lease: string): boolean {
    return this.#leases.has(lease);
  }

  /** What one or more transactions wrote, whole. */
  read(rows: readonly Written[]): void {
    for (const row of rows) this.#readRow(row);
    for (const { id } of rows) this.#checkPlace(id);
  }

  /** Nobody but its own failure may hold it up: it waits behind a member that halts its workflow. */
  isHalted({ workflow_id, seq, waits_for }: Task): boolean {
    if (waits_for !== 'workflow') return false;
    return this.#membersOf(workflow_id).some(
      (member) =>
        member.seq < seq && (member.status === 'dead_letter' || member.status === 'failed'),
    );
  }

  #readRow(row: Written): void {
    const before = this.#tasks.get(row.id) ?? null;
    const rows = before?.rows ?? { living: 0, history: 0 };
    if (row.deed === 'INSERT') rows[row.place] += 1;
    if (row.deed === 'DELETE') {
      rows[row.place] -= 1;
      return;
    }
    this.#noteMove(before, row);
    this.#checkMove(before, row);
    this.#checkRetries(before, row);
    this.#checkLease(before, row);
    this.#checkProgress(before, row);
    this.#checkEnd(before, row);
    this.#tasks.set(row.id, { ...row, rows });
    if (row.workflow_id === null) return;
    if (isOut(row) && (before === null || !isOut(before))) this.#checkTurn(row);
    if (isLeased(row.status)) this.#checkAlone(row);
  }

  #noteMove(before: Task | null, { id, status, lease, waits_for = null }: Written): void {
    const { trace } = this.#options;
    const from = lastState(before, status);
    const move = `${from} → ${status}`;
    if (from !== status) this.#moves[move] = (this.#moves[move] ?? 0) + 1;
    else if ((before?.waits_for ?? null) === waits_for) return;
    const held = lease === null ? '' : ` ${trace.lease(lease)}`;
    const why = waits_for === null ? '' : ` (${waits_for})`;
    trace.note(`    ${trace.task(id)}: ${move}${why}${held}`);
  }

  #checkMove(before: Task | null, { id, status }: Written): void {
    const from = lastState(before, status);
    if (from === status || canMove(from, status)) return;
    throw new Violation('no such move', `${this.#name(id)} went from ${from} to ${status}`);
  }

  /** Costs a retry: an attempt that went wrong, and nothing else. */
  #checkRetries(before: Task | null, row: Written): void {
    const cost = row.retry_count - (before?.retry_count ?? 0);
    if (before !== null && hasEnded(before.status) && row.retry_count === 0) return;
    const isBack = before !== null && isLeased(before.status) && row.status === 'pending';
    const allowed = isBack ? costsOf(row) : [0];
    if (!allowed.includes(cost)) {
      const past = row.past_attempts.at(-1);
      const how = past === undefined ? '' : ` after an attempt that was ${past.outcome}`;
      const detail = `${this.#name(row.id)} went to ${row.retry_count} by ${cost}${how}`;
      throw new Violation('retry count is attempts that cost', detail);
    }
    if (row.retry_count > row.max_retries) {
      throw new Violation('no more retries than allowed', this.#name(row.id));
    }
  }

  #checkLease(before: Task | null, row: Written): void {
    if (row.place === 'history') return;
    const { lease } = row;
    if ((lease !== null) !== isLeased(row.status)) {
      throw new Violation('a lease exactly while held', `${this.#name(row.id)} is ${row.status}`);
    }
    if (lease === null) return;
    if (before !== null && isLeased(before.status)) {
      if (before.lease === lease) return;
      throw new Violation('one live lease per task', `${this.#name(row.id)} got a second one`);
    }
    if (this.#leases.has(lease)) {
      throw new Violation('a lease is given once', `${this.#name(row.id)} got an old one`);
    }
    if (row.attempt !== (before?.attempt ?? 0) + 1) {
      throw new Violation('attempts count claims', `${this.#name(row.id)}: ${row.attempt}`);
    }
    this.#leases.set(lease, row.id);
  }

  #checkProgress(before: Task | null, { id, lease, progress_message: message }: Written): void {
    if (message === null || message === before?.progress_message) return;
    if (message === `by ${String(lease)}`) return;
    throw new Violation('progress is that of the good lease', this.#name(id));
  }

  /** Whoever ended it held the lease that was good. */
  #checkEnd(before: Task | null, row: Written): void {
    if (before === null || !isLeased(before.status)) return;
    if (row.status === 'completed') {
      const word = resultWord(row.result);
      const report = this.#options.ledger.reported.get(word ?? '');
      if (report?.lease !== before.lease || report.code !== null) {
        const detail = `${this.#name(row.id)} has the result ${String(word)}`;
        throw new Violation('the result is that of the good lease', detail);
      }
    } else if (row.status === 'pending' || row.status === 'dead_letter') {
      this.#checkPast(before, row);
    }
  }

  #checkPast(before: Task, { id, past_attempts }: Written): void {
    const past = past_attempts.at(-1);
    const { ledger, leaseMs, nowMs } = this.#options;
    if (past?.lease !== before.lease) {
      throw new Violation('an ended attempt is written down', this.#name(id));
    }
    if (past.outcome === 'failed' || past.outcome === 'deferred') {
      const report = ledger.reported.get(past.error?.message ?? '');
      if (report?.lease === before.lease) return;
      throw new Violation('a failure is that of the good lease', this.#name(id));
    }
    const isLost = past.outcome === 'lapsed' && past.error?.code === 'WORKER_LOST';
    const silentMs = nowMs() - (ledger.heardMs.get(before.worker_id ?? '') ?? 0);
    if (isLost && silentMs < leaseMs) {
      const detail = `${this.#name(id)}, whose worker was heard ${silentMs} ms ago`;
      throw new Violation('a healthy worker keeps its tasks', detail);
    }
  }

  /** In order: all before it have ended, and none of them halts it. One may be replayed later. */
  #checkTurn(row: Written): void {
    for (const other of this.#membersOf(row.workflow_id)) {
      if (other.seq >= row.seq || (hasEnded(other.status) && !isHalting(other))) continue;
      const detail = `${this.#name(row.id)} before ${this.#name(other.id)} (${other.status})`;
      throw new Violation('a workflow in its order', detail);
    }
  }

  /** One at a time, over all workers; who was cancelled keeps its place while it runs. */
  #checkAlone(row: Written): void {
    for (const other of this.#membersOf(row.workflow_id)) {
      if (other.id === row.id) continue;
      this.#checkCancelled(row, other);
      if (!isLeased(other.status)) continue;
      const detail = `${this.#name(row.id)} runs beside ${this.#name(other.id)}`;
      throw new Violation('one of a workflow at a time', detail);
    }
  }

  #checkCancelled(row: Written, other: Task): void {
    if (other.status !== 'cancelled') return;
    const { ledger, leaseMs, nowMs } = this.#options;
    for (const held of ledger.delivered.values()) {
      if (held.taskId !== other.id || held.hasLetGo || held.deadlineMs <= nowMs()) continue;
      const silentMs = nowMs() - (ledger.heardMs.get(held.workerId) ?? 0);
      if (silentMs >= leaseMs) continue;
      const detail = `${this.#name(row.id)} beside ${this.#name(other.id)}, cancelled and still running`;
      throw new Violation('one of a workflow at a time', detail);
    }
  }

  #checkPlace(id: string): void {
    const task = this.#tasks.get(id);
    const count = (task?.rows.living ?? 0) + (task?.rows.history ?? 0);
    if (count === 1) return;
    throw new Violation('a task exists exactly once', `${this.#name(id)} exists ${count} times`);
  }

  #membersOf(workflowId: string | null): Task[] {
    if (workflowId === null) return [];
    return [...this.#tasks.values()].filter((task) => task.workflow_id === workflowId);
  }

  #name(id: string): string {
    return this.#options.trace.task(id);
  }
}

/** What a worker waited for is written once, as claimed: it was queued when it was accepted. */
function lastState(before: Task | null, status: Written['status']): Task['status'] | 'new' {
  return before?.status ?? (isLeased(status) ? 'queued' : 'new');
}

/** Past its turn: in line, with a worker, or back from one. */
function isOut({ status, waits_for }: Written): boolean {
  return status === 'queued' || isLeased(status) || waits_for === 'time';
}

function isHalting({ status, halts_workflow }: Task): boolean {
  return halts_workflow && (status === 'dead_letter' || status === 'failed');
}

/** What the end of an attempt may cost, by how it ended. */
function costsOf({ past_attempts }: Written): readonly number[] {
  const past = past_attempts.at(-1);
  switch (past?.outcome) {
    case 'failed':
      // While a service is away, who tries it pays nothing.
      return past.error?.code === 'UNAVAILABLE' ? [0, 1] : [1];
    case 'timed_out':
      return [1];
    case 'lapsed':
      return [0, 1];
    default:
      return [0];
  }
}

function resultWord(result: unknown): string | null {
  if (typeof result !== 'object' || result === null || !('word' in result)) return null;
  return typeof result.word === 'string' ? result.word : null;
}
