import { randomUUID } from 'node:crypto';
import type { WorkerId } from '../domain/ids.js';
import { DatabaseAwayError, LockedError } from '../store/database.js';
import { isAnotherHearing, longestGapMs, proveHearing } from '../store/hearing.js';
import type { ClockStep } from '../store/sweep-attempts.js';
import { instant, type EngineContext } from './context.js';

const longestIntervalMs = 1_000;
const proofsPerLease = 12;
/** Without an answer for so long, people are told that Postgres does not answer. */
const silentMs = 3_000;
/** Less may be a proof that took long. Attempts have a grace of as much. */
const leastStepMs = 5_000;

/**
 * Whether this server can write heartbeats, and since when. Proven to all servers in sluice.servers, since any of
 * them may sweep: a worker is not blamed for silence while its server could not write.
 */
export class Hearing {
  /** Of this process, for as long as it runs. */
  readonly serverId = randomUUID();
  readonly #context: EngineContext;
  readonly #nowMs: () => number;
  /** False: something was lost since the last proof. */
  #continues = false;
  /** By the clock of decisions; null: not now. */
  #sinceMs: number | null = null;
  /** The proofs since then have no gap, whatever was lost meanwhile. By the clock of decisions. */
  #steadySinceMs = 0;
  /** When the last proof was asked for, by the steady clock; null: this process has not begun. */
  #provenMs: number | null = null;
  #failure: unknown = null;
  #step: { readonly seenMs: number; readonly byMs: number } | null = null;
  /** When the row of a silent worker was last found locked. */
  readonly #lockedMs = new Map<WorkerId, number>();

  constructor(context: EngineContext) {
    this.#context = context;
    const { clock } = context;
    this.#nowMs = () => (clock === null ? performance.now() : clock.nowMs());
  }

  /** Something of ours failed: the uninterrupted time starts again with the next proof. */
  lost(): void {
    this.#continues = false;
    this.#sinceMs = null;
  }

  /** A heartbeat that reached this server could not be written. */
  missed(workerId: WorkerId, error: unknown): void {
    if (error instanceof LockedError) this.#lockedMs.set(workerId, this.#nowMs());
    else if (error instanceof DatabaseAwayError) this.lost();
  }

  async prove(): Promise<number> {
    const { db, settings } = this.#context;
    const { serverId } = this;
    const { leaseMs } = settings;
    const askedMs = performance.now();
    const continues = this.#continues;
    // What is lost from now on counts for the next one.
    this.#continues = true;
    try {
      const proof = { serverId, leaseMs, continues };
      const proven = await proveHearing(db.vital, proof, instant(this.#context));
      const { hearingMs, locked, sinceLastMs } = proven;
      this.#noteStep(sinceLastMs, askedMs);
      if (!this.#isProven(askedMs)) this.#steadySinceMs = this.#nowMs();
      this.#provenMs = askedMs;
      this.#failure = null;
      for (const workerId of locked) this.#lockedMs.set(workerId, this.#nowMs());
      if (this.#isContinuing()) this.#sinceMs = this.#nowMs() - hearingMs;
    } catch (error) {
      this.#failure = error;
      this.lost();
      throw error;
    }
    return this.intervalMs;
  }

  /** By how much the clock of Postgres was set forward since this process began, and how long ago last. */
  step(): ClockStep {
    if (this.#step === null) return { agoMs: 0, byMs: 0 };
    return { agoMs: this.#nowMs() - this.#step.seenMs, byMs: this.#step.byMs };
  }

  /** A suspended machine looks the same from here: its clock stood still. */
  #noteStep(sinceLastMs: number | null, askedMs: number): void {
    if (sinceLastMs === null || this.#provenMs === null) return;
    const byMs = sinceLastMs - (askedMs - this.#provenMs);
    if (byMs < leastStepMs) return;
    this.#step = { seenMs: this.#nowMs(), byMs: byMs + (this.#step?.byMs ?? 0) };
    this.#steadySinceMs = this.#nowMs();
    const what = 'the clock of Postgres was set forward, or this machine was suspended';
    this.#context.log.warn({ by_ms: Math.round(byMs) }, what);
  }

  get intervalMs(): number {
    return Math.min(longestIntervalMs, this.#context.settings.leaseMs / proofsPerLease);
  }

  /** Another server could take over. */
  isAnotherThere(): Promise<boolean> {
    return isAnotherHearing(this.#context.db, this.serverId, this.#leaseMs);
  }

  /** For how long heartbeats could be written here, without a gap; 0: not now. */
  forMs(): number {
    return this.#sinceMs === null || !this.#isProven() ? 0 : this.#nowMs() - this.#sinceMs;
  }

  /** For how long its proofs came without a gap, whatever else failed meanwhile; 0: not now. */
  steadyMs(): number {
    return this.#isProven() ? this.#nowMs() - this.#steadySinceMs : 0;
  }

  /** The last proof is no gap ago. */
  #isProven(atMs = performance.now()): boolean {
    return atMs - (this.#provenMs ?? -Infinity) <= longestGapMs(this.#leaseMs);
  }

  /** Workers whose row was locked within the lease. */
  locked(): readonly WorkerId[] {
    const fromMs = this.#nowMs() - this.#leaseMs;
    for (const [workerId, seenMs] of this.#lockedMs) {
      if (seenMs < fromMs) this.#lockedMs.delete(workerId);
    }
    return [...this.#lockedMs.keys()];
  }

  /** Why nothing can be written now; null: it can. */
  trouble(): string | null {
    if (this.#failure !== null) return sentenceOf(this.#failure);
    const sinceProofMs = performance.now() - (this.#provenMs ?? Infinity);
    return sinceProofMs > silentMs + this.intervalMs ? 'Postgres does not answer' : null;
  }

  get #leaseMs(): number {
    return this.#context.settings.leaseMs;
  }

  /** Asked after an await. */
  #isContinuing(): boolean {
    return this.#continues;
  }
}

/** Of our own errors only: what Postgres says may name hosts, users and values. */
function sentenceOf(error: unknown): string {
  const isOurs = error instanceof DatabaseAwayError || error instanceof LockedError;
  return isOurs ? error.message : 'Postgres refuses to write';
}
