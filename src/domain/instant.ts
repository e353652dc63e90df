/** With it, and the years that a deadline may add, no answer gets a year of five digits. */
const endOfTimeMs = Date.UTC(9900);

/** Years that Postgres and every client can write. */
export function isKeepable(ms: number): boolean {
  return ms >= 0 && ms < endOfTimeMs;
}

/** Null: it lies beyond what can be written. A limit may owe more than all calendars have time for. */
export function instantIn(nowMs: number, waitMs: number): Date | null {
  const ms = nowMs + waitMs;
  return isKeepable(ms) ? new Date(ms) : null;
}
