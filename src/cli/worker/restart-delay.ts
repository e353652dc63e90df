const firstDelayMs = 500;
const maxDelayMs = 30_000;
/** Who lived this long did not crash because of how it was started. */
const steadyMs = 60_000;

/** How many crashes in a row there are with this one. */
export function countCrash(before: number, livedMs: number): number {
  return livedMs >= steadyMs ? 1 : before + 1;
}

/** `random` is in [0, 1): processes that crashed together don't come back at the same instant. */
export function restartDelayMs(crashes: number, random: number): number {
  const grown = Math.min(firstDelayMs * 2 ** (crashes - 1), maxDelayMs);
  return grown * (0.75 + random / 4);
}
