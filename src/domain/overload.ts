/** What a server sees of itself. */
export interface Pressure {
  /** How late its event loop is: whatever comes now waits for so long at least. */
  readonly lagMs: number;
  /** Submits that have come and were not answered yet. */
  readonly submitsUnderWay: number;
}

/** Which share of all submits is refused before they are read. */
export interface Shedding {
  readonly share: number;
  readonly lateForMs: number;
}

export const noShedding: Shedding = { share: 0, lateForMs: 0 };

/** Half of what a health check may take. */
const mostLagMs = 50;
/** With fewer it is not they who make the loop late, and to refuse them would help nobody. */
const leastUnderWay = 500;
/** A burst is over before; nothing of it is refused. */
const patienceMs = 500;
const growthPerMs = 1 / 300;
/** Slower than it grew, or it would swing between all and nothing. */
const declinePerMs = 1 / 5_000;
/** Few are under way since most are shed, and those alone keep the loop late. */
const slowDeclinePerMs = 1 / 50_000;
const mostShare = 0.98;

/** Grows while the loop is late because of submits, and shrinks slowly when it is not. */
export function nextShedding(
  { share, lateForMs }: Shedding,
  { lagMs, submitsUnderWay }: Pressure,
  passedMs: number,
): Shedding {
  const isLate = lagMs > mostLagMs;
  if (!isLate || submitsUnderWay < leastUnderWay) {
    const perMs = isLate ? slowDeclinePerMs : declinePerMs;
    return { share: Math.max(0, share - perMs * passedMs), lateForMs: 0 };
  }
  const lateNowForMs = lateForMs + passedMs;
  const isPatient = share === 0 && lateNowForMs < patienceMs;
  return {
    share: isPatient ? 0 : Math.min(mostShare, share + growthPerMs * passedMs),
    lateForMs: lateNowForMs,
  };
}
