import { isRefuted, type Failures, type FailuresInARow } from '../domain/bench.js';
import type { WorkerId } from '../domain/ids.js';
import { Witnesses } from './witnesses.js';

/** A success longer ago says little about now. Tasks may take minutes, so it is not a few seconds. */
const successCountsMs = 10 * 60_000;
const maxWorkers = 10_000;
const maxKindsOfWorker = 20;

/** How workers did lately, as far as they reported it to this server; by `performance.now()`. */
export class TrackRecord {
  readonly #failing = new Map<WorkerId, Map<string, Failures>>();
  readonly #succeeding = new Witnesses();

  succeeded(workerId: WorkerId, kind: string, nowMs: number): void {
    this.#failing.delete(workerId);
    this.#succeeding.add(kind, workerId, nowMs);
  }

  /** It no longer shows that the kind can be done. */
  stumbled(workerId: WorkerId, kind: string): void {
    this.#succeeding.delete(kind, workerId);
  }

  failed(workerId: WorkerId, kind: string, begunMs: number, nowMs: number): void {
    const failures = this.#failing.get(workerId) ?? new Map<string, Failures>();
    const before = failures.get(kind) ?? { count: 0, sinceMs: nowMs, begunMs };
    failures.set(kind, {
      count: before.count + 1,
      sinceMs: before.sinceMs,
      begunMs: Math.max(before.begunMs, begunMs),
    });
    dropOldest(failures, maxKindsOfWorker);
    this.#failing.set(workerId, failures);
    dropOldest(this.#failing, maxWorkers);
  }

  failuresOf(workerId: WorkerId): FailuresInARow {
    return this.#failing.get(workerId) ?? new Map<string, Failures>();
  }

  forgetFailures(workerId: WorkerId): void {
    this.#failing.delete(workerId);
  }

  /** Failures at these kinds were not the workers' own. */
  forgive(isForgiven: (kind: string) => boolean): void {
    for (const [workerId, failures] of this.#failing) {
      for (const kind of failures.keys()) if (isForgiven(kind)) failures.delete(kind);
      if (failures.size === 0) this.#failing.delete(workerId);
    }
  }

  /** Others who did this kind well while it failed. */
  witnesses(
    kind: string,
    except: WorkerId,
    failures: Failures,
    nowMs: number,
  ): readonly WorkerId[] {
    return this.#succeeding
      .of(kind)
      .filter(({ workerId, ...successes }) => {
        if (workerId === except || nowMs - successes.lastMs >= successCountsMs) return false;
        return isRefuted(failures, successes);
      })
      .map(({ workerId }) => workerId);
  }

  /** They have left, or are benched themselves. */
  dismiss(witnesses: readonly WorkerId[]): void {
    this.#succeeding.deleteAll(witnesses);
  }
}

function dropOldest(map: Map<string, unknown>, most: number): void {
  if (map.size <= most) return;
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}
