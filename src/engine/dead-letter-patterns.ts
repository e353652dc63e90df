import type { Confinement } from '../domain/confinement.js';
import type { DeadLetterPattern } from '../protocol/dead-letters-api.js';
import type { TaskEvent } from '../protocol/events.js';
import {
  classifyDeadLetters,
  noteUncounted,
  purgePatterns,
} from '../store/classify-dead-letters.js';
import { findDeadLetterPatterns } from '../store/dead-letter-patterns.js';
import { Cached } from './cached.js';
import { approximateNow, instant, type EngineContext } from './context.js';

/** Changes in one transaction, and in one run: after a flood the next tick goes on. */
interface Portions {
  readonly atOnce: number;
  readonly inRun: number;
}

/** A transaction takes 0.1 s or so. */
const onServer: Portions = { atOnce: 1_000, inRun: 10_000 };
/** An embedded database computes in this process: nothing else happens while a transaction is under way. */
const embedded: Portions = { atOnce: 50, inRun: 1_000 };
/** While dead letters come and go. */
const busyMs = 1_000;
/** For changes that other processes made. */
const idleMs = 30_000;
/** How often what was counted is compared with a page of the dead letters that there are. */
const compareMs = 60_000;
const comparedAtOnce = 5_000;
const dayMs = 24 * 3_600_000;
const absentKeptMs = 90 * dayMs;
const maxAbsent = 500;
/** What people ask for is computed once in so long, however many ask. */
const freshForMs = 1_000;
/** One for each confinement; each may hold as many bytes as an answer. */
const maxAnalyses = 16;

/** Sorts dead letters into patterns, in the background and before somebody asks. */
export class DeadLetterPatterns {
  readonly #context: EngineContext;
  /** By confinement, the one that was asked for last standing last. */
  readonly #analyses = new Map<string, Cached<DeadLetterPattern[]>>();
  #cursor: string | null = null;
  #nextCompareMs = 0;
  /** One after the other. */
  #classifying: Promise<boolean> = Promise.resolve(false);
  readonly #recent: Cached<boolean>;
  #isIdle = false;
  #wake: () => void = () => undefined;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#recent = new Cached(freshForMs, () => this.#inTurn());
  }

  begin(wake: () => void): void {
    this.#wake = wake;
  }

  /** The first one after a pause is classified at once, the next ones once a second. */
  note({ from, to }: TaskEvent): void {
    if (!this.#isIdle || (to !== 'dead_letter' && from !== 'dead_letter')) return;
    this.#isIdle = false;
    this.#wake();
  }

  async tick(): Promise<number> {
    const goesOn = await this.#inTurn();
    const nowMs = performance.now();
    if (nowMs >= this.#nextCompareMs) {
      this.#nextCompareMs = nowMs + compareMs;
      this.#cursor = await noteUncounted(this.#context.db, this.#cursor, comparedAtOnce);
      await purgePatterns(this.#context.db, absentKeptMs, maxAbsent, instant(this.#context));
    }
    this.#isIdle = !goesOn;
    return this.#isIdle ? idleMs : busyMs;
  }

  /** For people's reads and replays: all who ask share one run, and runs for them take 5 % of the time at most. */
  async catchUp(): Promise<void> {
    await this.#recent.get();
  }

  #inTurn(): Promise<boolean> {
    const run = () => this.#classify();
    this.#classifying = this.#classifying.then(run, run);
    return this.#classifying;
  }

  /** False: there was nothing to do, and no other server did it. */
  async #classify(): Promise<boolean> {
    const { db } = this.#context;
    const { atOnce, inRun } = db.isExclusive ? embedded : onServer;
    let changes = 0;
    while (changes < inRun) {
      const taken = await classifyDeadLetters(db, atOnce);
      if (taken === null) return true;
      if (taken === 0) break;
      changes += taken;
    }
    return changes > 0;
  }

  analyse(within: Confinement): Promise<readonly DeadLetterPattern[]> {
    const key = JSON.stringify(within);
    const analysis =
      this.#analyses.get(key) ?? new Cached(freshForMs, () => this.#readPatterns(within));
    this.#analyses.delete(key);
    this.#analyses.set(key, analysis);
    const [oldest] = this.#analyses.keys();
    if (oldest !== undefined && this.#analyses.size > maxAnalyses) this.#analyses.delete(oldest);
    return analysis.get();
  }

  async #readPatterns(within: Confinement): Promise<DeadLetterPattern[]> {
    const { db } = this.#context;
    await this.catchUp();
    return findDeadLetterPatterns(db.reads, within, approximateNow(this.#context).getTime());
  }
}
