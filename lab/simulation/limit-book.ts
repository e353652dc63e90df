import type { RateLimit } from '../../src/domain/queue-settings.js';
import { Violation } from './violation.js';

/** A rule and since when it has been the only one that anybody could go by. */
interface Term<Rule> {
  readonly rule: Rule;
  readonly sinceMs: number;
}

/** A change that was asked for. It is told once how it ended. */
export interface Change<Rule> {
  readonly acknowledged: (rule: Rule, countsFromMs: number) => void;
  /** It may have been made or not. */
  readonly refused: () => void;
}

/**
 * A rule that is changed while others go by it. From the moment a change is asked for until it is
 * acknowledged, nobody can say which rule counts. Nor after two that were under way at once: the one
 * that was asked for last need not be the one that was made last.
 */
export class ChangingRule<Rule> {
  #term: Term<Rule> | null = null;
  readonly #underWay = new Set<{ isAlone: boolean }>();

  change(): Change<Rule> {
    for (const other of this.#underWay) other.isAlone = false;
    const asked = { isAlone: this.#underWay.size === 0 };
    this.#underWay.add(asked);
    this.#term = null;
    return {
      acknowledged: (rule, countsFromMs) => {
        this.#underWay.delete(asked);
        if (asked.isAlone) this.#term = { rule, sinceMs: countsFromMs };
      },
      refused: () => {
        this.#underWay.delete(asked);
      },
    };
  }

  /** Null: not known, or not in force before that millisecond. */
  at(ms: number): Term<Rule> | null {
    return this.#term !== null && this.#term.sinceMs < ms ? this.#term : null;
  }
}

interface Grant {
  readonly atMs: number;
  readonly cost: number;
}

/** What was granted under one limit, and whether any window of it had too much. */
export class GrantBook {
  readonly rule = new ChangingRule<RateLimit>();
  readonly #name: string;
  readonly #grants: Grant[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  add(grant: Grant): void {
    this.#grants.push(grant);
    const term = this.rule.at(grant.atMs);
    if (term === null) return;
    const { rule, sinceMs } = term;
    const windowMs = rule.perSeconds * 1000;
    const near = this.#grants.filter(
      ({ atMs }) => atMs > sinceMs && Math.abs(atMs - grant.atMs) < windowMs,
    );
    for (const { atMs: beginMs } of near) {
      const inside = near.filter(({ atMs }) => atMs >= beginMs && atMs < beginMs + windowMs);
      const spent = inside.reduce((sum, { cost }) => sum + cost, 0);
      const most = boundOf(rule, inside);
      if (spent <= most) continue;
      const detail = `${this.#name} granted ${spent} in ${rule.perSeconds} s, at most ${most}`;
      throw new Violation('no limit is exceeded', detail);
    }
  }
}

/** A cost above what a full bucket holds runs it into debt: that one comes on top. */
function boundOf({ unit, rate, burst }: RateLimit, grants: readonly Grant[]): number {
  const dearest = unit === 'requests' ? 0 : Math.max(...grants.map(({ cost }) => cost));
  return rate + (burst ?? 0) + dearest;
}
