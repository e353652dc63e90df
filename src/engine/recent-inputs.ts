import type { TaskId } from '../domain/ids.js';

const defaultMaxLength = 16 * 1024 * 1024;

/**
 * Parameters of tasks that were submitted here a moment ago, so that whoever claims one here need not
 * read them again: they never change. As text, the oldest given up first.
 */
export class RecentInputs {
  readonly #texts = new Map<TaskId, string>();
  readonly #maxLength: number;
  #length = 0;

  constructor(maxLength: number = defaultMaxLength) {
    this.#maxLength = maxLength;
  }

  get size(): number {
    return this.#texts.size;
  }

  add(taskId: TaskId, json: string): void {
    if (json.length > this.#maxLength) return;
    this.#texts.set(taskId, json);
    this.#length += json.length;
    if (this.#length <= this.#maxLength) return;
    for (const [oldest, text] of this.#texts) {
      this.#forget(oldest, text);
      if (this.#length <= this.#maxLength) return;
    }
  }

  /** Null: it is to be read. It is needed once, since most attempts succeed. */
  take(taskId: TaskId): string | null {
    const json = this.#texts.get(taskId) ?? null;
    if (json !== null) this.#forget(taskId, json);
    return json;
  }

  #forget(taskId: TaskId, json: string): void {
    this.#texts.delete(taskId);
    this.#length -= json.length;
  }
}
