import type { Circuit } from '../domain/circuit.js';
import type { WorkerId } from '../domain/ids.js';

/** Who failed last lets all others go first by so much. */
const longestMs = 250;
/** The clock that lets the probes go may be ahead of this one by so much. */
const clockSlackMs = 250;
const maxWorkersOfQueue = 1_000;

/**
 * Workers that the service of a stopped queue pushed back. When it is tried, others go first: a worker
 * that is cut off by itself would else be the one to try again and again, and keep the queue stopped
 * for all. As far as it was reported to this server.
 */
export class PushedBack {
  /** By queue: who failed, the latest last, and the turn of probes at which each gave way. */
  readonly #byQueue = new Map<string, Map<WorkerId, number>>();

  note(queue: string, workerId: WorkerId): void {
    const failed = this.#byQueue.get(queue) ?? new Map<WorkerId, number>();
    failed.delete(workerId);
    failed.set(workerId, Number.NEGATIVE_INFINITY);
    this.#byQueue.set(queue, failed);
    if (failed.size <= maxWorkersOfQueue) return;
    for (const oldest of failed.keys()) {
      failed.delete(oldest);
      return;
    }
  }

  /** How long it has to wait, once at each turn; 0: not at all. */
  giveWayMs(workerId: WorkerId, nowMs: number, circuitOf: (queue: string) => Circuit): number {
    let most = 0;
    for (const [queue, failed] of this.#byQueue) {
      const circuit = circuitOf(queue);
      if (circuit.kind !== 'open') this.#byQueue.delete(queue);
      else most = Math.max(most, waitMs(failed, workerId, circuit.probesAtMs, nowMs));
    }
    return most;
  }
}

function waitMs(
  failed: Map<WorkerId, number>,
  workerId: WorkerId,
  probesAtMs: number,
  nowMs: number,
): number {
  const gaveWayAt = failed.get(workerId);
  if (gaveWayAt === undefined || gaveWayAt >= probesAtMs) return 0;
  if (nowMs < probesAtMs - clockSlackMs || nowMs >= probesAtMs + longestMs) return 0;
  failed.set(workerId, probesAtMs);
  const place = [...failed.keys()].indexOf(workerId) + 1;
  return Math.max(0, Math.ceil(probesAtMs + (longestMs * place) / failed.size - nowMs));
}
