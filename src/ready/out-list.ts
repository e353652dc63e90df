import type { TaskId } from '../domain/ids.js';
import type { ReadyEntry } from './ready-lane.js';
import type { OutCursor, OutStretch } from './ready-queue.js';

/** What is taken or runs, in the order in which it left. */
export class OutList {
  readonly #entries = new Map<TaskId, ReadyEntry>();
  #left = 0;

  /** The number of the one that left last. */
  get last(): number {
    return this.#left;
  }

  add(entry: ReadyEntry, nowMs: number): void {
    this.#left += 1;
    entry.outNumber = this.#left;
    entry.outSince = nowMs;
    this.#entries.set(entry.taskId, entry);
  }

  delete(entry: ReadyEntry): void {
    this.#entries.delete(entry.taskId);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Walks over what was listed before: this is asked now and then, for some thousands. */
  list(after: OutCursor | null, limit: number, nowMs: number): OutStretch {
    const from = after === null ? 0 : Number(after);
    const found: ReadyEntry[] = [];
    for (const entry of this.#entries.values()) {
      if (entry.outNumber <= from) continue;
      if (found.length === limit) {
        const last = found.at(-1)?.outNumber ?? from;
        return { entries: found.map((one) => outOf(one, nowMs)), next: String(last) };
      }
      found.push(entry);
    }
    return { entries: found.map((one) => outOf(one, nowMs)), next: null };
  }
}

function outOf({ taskId, grant, queue, confirmed, outSince }: ReadyEntry, nowMs: number) {
  return { taskId, grant, queue: queue.name, confirmed, forMs: nowMs - outSince };
}
