/** Why a submit was answered 429. */
export type RefusalReason =
  | 'max_active'
  | 'queue_max_active'
  | 'queue_max_lanes'
  | 'submission_limit'
  /** The server had more to do than it could; the request was not read. */
  | 'overload';

/** Counts them, for the metrics. */
export class Refusals {
  readonly #counts: Record<RefusalReason, number> = {
    max_active: 0,
    queue_max_active: 0,
    queue_max_lanes: 0,
    submission_limit: 0,
    overload: 0,
  };

  note(reason: RefusalReason): void {
    this.#counts[reason] += 1;
  }

  counts(): Readonly<Record<string, number>> {
    return { ...this.#counts };
  }
}
