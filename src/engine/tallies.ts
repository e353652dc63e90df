/** Counts by reason, since this process began. All reasons are known, so that each is there from the beginning. */
class Tally<Reason extends string> {
  readonly #counts: Map<Reason, number>;

  constructor(reasons: readonly Reason[]) {
    this.#counts = new Map(reasons.map((reason) => [reason, 0]));
  }

  add(reason: Reason, count = 1): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + count);
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}

/** What this process saw go wrong between it and its workers. */
export class Tallies {
  /** `heartbeat_lapsed`: a worker fell silent; `suspended`: it failed at what others succeed at. */
  readonly workerFailures = new Tally(['heartbeat_lapsed', 'suspended']);
  /** Heartbeats that were not acknowledged. */
  readonly heartbeatFailures = new Tally(['worker_unknown', 'unavailable']);
  /** Writes that their lease refused. */
  readonly staleWrites = new Tally(['start', 'progress', 'result', 'release']);
}
