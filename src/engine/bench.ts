import { allowance, standingOf, type Standing, type Trial } from '../domain/bench.js';
import type { WorkerId } from '../domain/ids.js';
import { findBenched } from '../store/workers.js';
import { approximateNow, type EngineContext } from './context.js';

const trusted: Standing = { kind: 'trusted' };

interface Ration {
  /** How many of those it asks for it may get now. */
  readonly count: number;
  /** How long until it may get more, unless it is told before. */
  readonly waitMs: number;
}

/**
 * A copy of who is benched. The rows in Postgres decide; they are read again every few seconds, and
 * what other servers change is told on the bus.
 */
export class Bench {
  readonly #context: EngineContext;
  readonly #trials = new Map<WorkerId, Trial>();
  readonly #onFreed: (workerId: WorkerId) => void;
  #changes = 0;

  /** `onFreed`: who could get nothing may get something. */
  constructor(context: EngineContext, onFreed: (workerId: WorkerId) => void) {
    this.#context = context;
    this.#onFreed = onFreed;
  }

  /** How many workers get nothing now. */
  suspended(): number {
    const nowMs = this.#nowMs();
    const workers = [...this.#trials.keys()];
    return workers.filter((workerId) => this.#standingAt(workerId, nowMs).kind === 'benched')
      .length;
  }

  standing(workerId: WorkerId): Standing {
    return this.#standingAt(workerId, this.#nowMs());
  }

  /** Both by one look at the clock: who gets nothing always knows when it may get something. */
  ration(workerId: WorkerId, wanted: number): Ration {
    const nowMs = this.#nowMs();
    const standing = this.#standingAt(workerId, nowMs);
    const count = allowance(standing, wanted);
    if (allowance(standing, 1) > 0 || standing.kind === 'trusted')
      return { count, waitMs: Infinity };
    return { count, waitMs: Math.max(1, Math.ceil(standing.untilMs - nowMs)) };
  }

  /** Before it takes them, so that two polls of one worker do not get twice as many. */
  give(workerId: WorkerId, count: number): void {
    const standing = this.standing(workerId);
    const trial = this.#trials.get(workerId);
    if (trial === undefined || standing.kind !== 'tried') return;
    const probesOut = (this.#nowMs() < standing.untilMs ? trial.probesOut : 0) + count;
    this.#trials.set(workerId, { ...trial, probesOut, probedAtMs: this.#nowMs() });
  }

  /** They were not taken after all, or have ended. */
  giveBack(workerId: WorkerId, count: number): void {
    const trial = this.#trials.get(workerId);
    if (trial === undefined) return;
    const couldGetAny = this.#mayGetAny(workerId);
    this.#trials.set(workerId, { ...trial, probesOut: Math.max(0, trial.probesOut - count) });
    if (!couldGetAny && this.#mayGetAny(workerId)) this.#onFreed(workerId);
  }

  /** Null: it is trusted again. */
  set(workerId: WorkerId, benchedUntilMs: number | null): void {
    this.#changes += 1;
    if (benchedUntilMs === null) this.#trials.delete(workerId);
    else this.#trials.set(workerId, newTrial(benchedUntilMs));
  }

  async refresh(): Promise<void> {
    const changes = this.#changes;
    const rows = await findBenched(this.#context.db);
    // What was read may be older than what was heard meanwhile.
    if (changes !== this.#changes) return;
    const before = new Map(this.#trials);
    this.#trials.clear();
    for (const { workerId, benchedUntil } of rows) {
      const untilMs = benchedUntil.getTime();
      const known = before.get(workerId);
      this.#trials.set(workerId, known?.benchedUntilMs === untilMs ? known : newTrial(untilMs));
    }
  }

  #mayGetAny(workerId: WorkerId): boolean {
    return allowance(this.standing(workerId), 1) > 0;
  }

  #standingAt(workerId: WorkerId, nowMs: number): Standing {
    const trial = this.#trials.get(workerId);
    if (trial === undefined) return trusted;
    return standingOf(trial, nowMs, this.#context.settings.benchMs);
  }

  #nowMs(): number {
    return approximateNow(this.#context).getTime();
  }
}

function newTrial(benchedUntilMs: number): Trial {
  return { benchedUntilMs, probesOut: 0, probedAtMs: benchedUntilMs };
}
