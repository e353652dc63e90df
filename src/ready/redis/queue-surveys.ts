import type { NoteAge, SurveyedQueue } from '../ready-queue.js';
import { inAnsweredParts } from './in-chunks.js';
import { listOf } from './replies.js';
import type { ScriptRunner } from './script-runner.js';
import { scripts } from './scripts.js';
import { broughtUp, countedOf, lookOf, type CountedQueue, type Look } from './surveyed.js';

/** Queues that are looked at by one script: 5 ms. */
const lookedAtOnce = 50;
/** Queues that are looked at in one survey. Each takes Redis 50 to 100 µs, for its windows are read. */
const defaultMostLooked = 1_000;

interface Known {
  readonly look: Look;
  readonly lookedMs: number;
  readonly turn: string;
}

/**
 * Counts every queue, and looks closely at some: all of them, or where there are very many those that nobody looked
 * at, those that were taken from, and those whose look is the oldest. Of the others an earlier look is brought up to date.
 */
export class QueueSurveys {
  readonly #runner: ScriptRunner;
  readonly #mostLooked: number;
  #known = new Map<string, Known>();

  constructor(runner: ScriptRunner, mostLooked = defaultMostLooked) {
    this.#runner = runner;
    this.#mostLooked = mostLooked;
  }

  async survey(noteAge: NoteAge): Promise<readonly SurveyedQueue[]> {
    const counted = await this.#count();
    const looked = await this.#look(this.#choose([...counted.values()]));
    const known = new Map<string, Known>();
    const nowMs = this.#runner.elapsedMs();
    const surveyed = [...counted.values()].map((one) => {
      const fresh = looked.get(one.queue);
      const latest = fresh ?? this.#known.get(one.queue);
      if (latest !== undefined) known.set(one.queue, latest);
      const look =
        fresh?.look ??
        broughtUp(latest?.look ?? neverLooked(one), one.depth, nowMs - (latest?.lookedMs ?? nowMs));
      for (const { priority, ageMs, count } of look.ages) noteAge(priority, ageMs, count);
      const { waiting, heldBackBy } = look;
      return { queue: one.queue, depth: one.depth, running: one.running, waiting, heldBackBy };
    });
    this.#known = known;
    return surveyed;
  }

  async #count(): Promise<Map<string, CountedQueue>> {
    // A scan may name one twice.
    const found = new Map<string, CountedQueue>();
    let cursor = '0';
    do {
      const [next, told] = listOf(await this.#runner.run(scripts.counts, cursor));
      for (const one of countedOf(told)) found.set(one.queue, one);
      cursor = String(next);
    } while (cursor !== '0');
    return found;
  }

  #choose(counted: readonly CountedQueue[]): readonly CountedQueue[] {
    if (counted.length <= this.#mostLooked) return counted;
    const rank = ({ queue, turn }: CountedQueue): number => {
      const known = this.#known.get(queue);
      if (known === undefined) return Number.NEGATIVE_INFINITY;
      // One that was taken from counts as if its look were a minute older.
      return known.lookedMs - (known.turn === turn ? 0 : 60_000);
    };
    const ranked = counted.map((one) => ({ one, rank: rank(one) }));
    ranked.sort((a, b) => a.rank - b.rank);
    return ranked.slice(0, this.#mostLooked).map(({ one }) => one);
  }

  async #look(chosen: readonly CountedQueue[]): Promise<Map<string, Known>> {
    const looked = new Map<string, Known>();
    await inAnsweredParts(chosen, lookedAtOnce, async (part) => {
      const names = part.map(({ queue }) => queue);
      const replies = listOf(await this.#runner.run(scripts.survey, ...names));
      const lookedMs = this.#runner.elapsedMs();
      for (const [index, reply] of replies.entries()) {
        const turn = part[index]?.turn ?? '';
        const look = lookOf(reply);
        looked.set(look.queue, { look, lookedMs, turn });
      }
      // Closed: there is nothing to look at.
      return replies.length === 0 ? part.length : replies.length;
    });
    return looked;
  }
}

/** Nothing is known but its counts. */
function neverLooked({ queue, depth }: CountedQueue): Look {
  const waiting = {
    high: { count: depth.high, oldestAgeMs: null },
    medium: { count: depth.medium, oldestAgeMs: null },
    low: { count: depth.low, oldestAgeMs: null },
  };
  return { queue, heldBackBy: null, waiting, ages: [] };
}
