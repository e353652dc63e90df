import type { TaskId } from '../domain/ids.js';
import { hasEnded } from '../domain/task-state.js';
import type { TaskEvent } from '../protocol/events.js';

export type TaskListener = (event: TaskEvent) => void;

/** What happened, told after it was committed. A listener that throws disturbs nobody. */
export class TaskEvents {
  readonly #listeners = new Set<TaskListener>();
  /** By task: ten thousand callers who each await one task must not hear of all of them. */
  readonly #endListeners = new Map<TaskId, Set<() => void>>();
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  subscribe(listener: TaskListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  onEnd(taskId: TaskId, listener: () => void): () => void {
    const listeners = this.#endListeners.get(taskId) ?? new Set();
    this.#endListeners.set(taskId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#endListeners.delete(taskId);
    };
  }

  emit(event: TaskEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        this.#onError(error);
      }
    }
    if (!hasEnded(event.to)) return;
    for (const listener of this.#endListeners.get(event.taskId) ?? []) listener();
  }
}
