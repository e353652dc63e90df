interface Waiter {
  readonly holds: () => boolean;
  readonly end: () => void;
}

/** Waiting for a state that somebody else changes: whoever changes it calls `changed`. */
export class Condition {
  readonly #waiters = new Set<Waiter>();

  changed(): void {
    for (const waiter of this.#waiters) if (waiter.holds()) waiter.end();
  }

  /** Resolves when it holds, or when the signal fires: the caller looks which. */
  until(holds: () => boolean, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (holds() || signal?.aborted === true) {
        resolve();
        return;
      }
      const end = () => {
        this.#waiters.delete(waiter);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      const waiter: Waiter = { holds, end };
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', end, { once: true });
    });
  }
}
