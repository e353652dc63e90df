/** Whether submits that waited too long are refused. */
export interface Shedding {
  readonly isOn: boolean;
  /** Since when all that came speak for the other; null: the last one did not. */
  readonly otherwiseSinceMs: number | null;
}

export const noShedding: Shedding = { isOn: false, otherwiseSinceMs: null };

/** Half of what a health check may take. */
const mostWaitMs = 50;
/** A burst is over before; nothing of it is refused. */
const patienceMs = 500;
/** Nobody came late for so long: it is over. */
const calmMs = 1_000;

export function isLate(waitedMs: number): boolean {
  return waitedMs > mostWaitMs;
}

/**
 * Begins when everybody waited too long for a while, and ends when nobody did for a while. In between
 * those who waited too long are refused, which is as many as are too many.
 */
export function nextShedding(
  { isOn, otherwiseSinceMs }: Shedding,
  waitedMs: number,
  nowMs: number,
): Shedding {
  if (isLate(waitedMs) === isOn) return { isOn, otherwiseSinceMs: null };
  const sinceMs = otherwiseSinceMs ?? nowMs;
  if (nowMs - sinceMs < (isOn ? calmMs : patienceMs)) return { isOn, otherwiseSinceMs: sinceMs };
  return { isOn: !isOn, otherwiseSinceMs: null };
}
