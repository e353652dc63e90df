/** More at once would not be faster, and a slow answer would hold up that many tasks. */
export const defaultClaimBatch = 50;

/** What a worker feels, measured by itself. */
export interface Pressure {
  /** Memory in use as a share of what it may use. */
  readonly memoryShare: number;
  readonly eventLoopDelayMs: number;
  /** p99 of recent durations as a share of their threshold; 0 when there is none. */
  readonly durationShare: number;
}

const maxEventLoopDelayMs = 100;

/** How many tasks to ask for: never more than can start at once, and 0 only when no slot is free. */
export function claimSize(
  freeSlots: number,
  pressure: Pressure,
  batch = defaultClaimBatch,
): number {
  if (freeSlots === 0) return 0;
  const memory = memoryState(pressure);
  if (memory === 'critical') return 1;
  const factor =
    (memory === 'high' ? 0.5 : 1) *
    (pressure.durationShare > 1 ? 0.7 : 1) *
    (pressure.eventLoopDelayMs > maxEventLoopDelayMs ? 0.5 : 1);
  return Math.max(1, Math.floor(Math.min(freeSlots, batch) * factor));
}

/**
 * `high`: smaller claims alone would only delay the end, since enough of them fill the slots too, so
 * the worker also waits a moment between two. `critical`: one task at a time.
 */
export type MemoryState = 'fine' | 'high' | 'critical';

export function memoryState({ memoryShare }: Pressure): MemoryState {
  if (memoryShare > 0.95) return 'critical';
  return memoryShare > 0.8 ? 'high' : 'fine';
}
