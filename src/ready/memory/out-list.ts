import type { TaskId } from '../../domain/ids.js';
import type { Cost } from '../../domain/queue-settings.js';
import type { Queue } from './ready-lane.js';
import type { Grant, OutCursor, OutStretch } from '../ready-queue.js';

/** A task that is taken or runs: it only holds a slot of its queue. */
export interface OutEntry {
  readonly taskId: TaskId;
  readonly queue: Queue;
  readonly cost: Cost;
  /** Of its taking. */
  readonly grant: string;
  /** Postgres granted it: it runs. */
  confirmed: boolean;
  /** Since when it is taken or runs, and the how-manyth of those it is. */
  readonly sinceMs: number;
  readonly number: number;
}

/** What is taken or runs, in the order in which it left. */
export class OutList {
  readonly #entries = new Map<TaskId, OutEntry>();
  #left = 0;

  get size(): number {
    return this.#entries.size;
  }

  /** The number of the one that left last. */
  get last(): number {
    return this.#left;
  }

  add(
    { taskId, cost }: Pick<OutEntry, 'taskId' | 'cost'>,
    queue: Queue,
    grant: string,
    sinceMs: number,
  ): OutEntry {
    this.#left += 1;
    const number = this.#left;
    const entry = { taskId, queue, cost, grant, confirmed: false, sinceMs, number };
    this.#entries.set(taskId, entry);
    return entry;
  }

  /** Of this taking. */
  find({ taskId, grant }: Grant): OutEntry | null {
    const entry = this.#entries.get(taskId);
    return entry?.grant === grant ? entry : null;
  }

  has(taskId: TaskId): boolean {
    return this.#entries.has(taskId);
  }

  /** False: it was not in it. */
  delete({ taskId }: OutEntry): boolean {
    return this.#entries.delete(taskId);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Walks over what was listed before: this is asked now and then, for some thousands. */
  list(after: OutCursor | null, limit: number, nowMs: number): OutStretch {
    const from = after === null ? 0 : Number(after);
    const found: OutEntry[] = [];
    for (const entry of this.#entries.values()) {
      if (entry.number <= from) continue;
      if (found.length === limit) {
        const last = found.at(-1)?.number ?? from;
        return { entries: found.map((one) => outOf(one, nowMs)), next: String(last) };
      }
      found.push(entry);
    }
    return { entries: found.map((one) => outOf(one, nowMs)), next: null };
  }
}

function outOf({ taskId, grant, queue, confirmed, sinceMs }: OutEntry, nowMs: number) {
  return { taskId, grant, queue: queue.name, confirmed, forMs: nowMs - sinceMs };
}
