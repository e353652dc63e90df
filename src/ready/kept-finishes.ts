import type { Finished } from './ready-queue.js';

/** Past this many the oldest go: their slots come back when the slots are compared with Postgres. */
const maxKept = 10_000;

export interface KeptFinish extends Finished {
  /** It was sent before, and the answer did not come: it may count already. */
  readonly isResent: boolean;
}

/** What ended while the ready queue was away: told when it is back, and until then kept here. */
export class KeptFinishes {
  #kept: KeptFinish[] = [];

  get isEmpty(): boolean {
    return this.#kept.length === 0;
  }

  keep(finished: readonly KeptFinish[]): void {
    this.#kept.push(...finished);
    if (this.#kept.length > maxKept) this.#kept = this.#kept.slice(-maxKept);
  }

  takeAll(): KeptFinish[] {
    const kept = this.#kept;
    this.#kept = [];
    return kept;
  }
}
