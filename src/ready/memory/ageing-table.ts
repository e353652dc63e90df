import type { Ageing, PriorityRank } from '../../domain/priority.js';

/**
 * `effectivePriority` of the domain as ranks and plain numbers, for heads that are looked at on
 * every take. In whole milliseconds, so that "old enough" and "due at" can't differ by a rounding.
 */
export class AgeingTable {
  readonly #lowToMediumMs: number;
  readonly #lowToHighMs: number;
  readonly #mediumToHighMs: number;

  constructor(ageing: Ageing) {
    this.#lowToHighMs = threshold(ageing.lowToHighMs);
    this.#lowToMediumMs = Math.min(threshold(ageing.lowToMediumMs), this.#lowToHighMs);
    this.#mediumToHighMs = threshold(ageing.mediumToHighMs);
  }

  /** The age from which a task of this rank is at least as urgent as `level`. */
  ageFor(rank: PriorityRank, level: PriorityRank): number {
    if (level >= rank) return Number.NEGATIVE_INFINITY;
    if (rank === 1) return this.#mediumToHighMs;
    return level === 0 ? this.#lowToHighMs : this.#lowToMediumMs;
  }

  levelOf(rank: PriorityRank, ageMs: number): PriorityRank {
    if (ageMs >= this.ageFor(rank, 0)) return 0;
    return ageMs >= this.ageFor(rank, 1) ? 1 : 2;
  }
}

function threshold(ageMs: number | null): number {
  return ageMs === null ? Number.POSITIVE_INFINITY : Math.ceil(ageMs);
}
