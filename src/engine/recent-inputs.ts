import type { TaskId } from '../domain/ids.js';

const defaultMaxBytes = 8 * 1024 * 1024;
/** Of an entry, besides its text: about. */
const entryBytes = 200;

/**
 * Parameters of tasks that were submitted here a moment ago, so that whoever claims one here need not
 * read them again: they never change. As text, in two halves: when the younger one is full, the older
 * one is given up.
 */
export class RecentInputs {
  readonly #maxBytes: number;
  #young = new Map<TaskId, string>();
  #old = new Map<TaskId, string>();
  #youngBytes = 0;

  constructor(maxBytes: number = defaultMaxBytes) {
    this.#maxBytes = maxBytes;
  }

  add(taskId: TaskId, json: string): void {
    const bytes = json.length + entryBytes;
    const half = this.#maxBytes / 2;
    if (bytes > half) return;
    if (this.#youngBytes + bytes > half) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngBytes = 0;
    }
    this.#young.set(taskId, json);
    this.#youngBytes += bytes;
  }

  /** Null: it is to be read. It is needed once, since most attempts succeed. */
  take(taskId: TaskId): string | null {
    const half = this.#young.has(taskId) ? this.#young : this.#old;
    const json = half.get(taskId) ?? null;
    half.delete(taskId);
    return json;
  }
}
