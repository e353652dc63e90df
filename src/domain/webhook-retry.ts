const firstMs = 2_000;
/** How long after it is back a receiver waits at most. */
const longestMs = 60_000;
const givenUpAfterMs = 3 * 24 * 3_600_000;

/** How long until a message is tried again that was tried so often; null: never. `random` is in [0, 1). */
export function retryWebhookMs(tries: number, ageMs: number, random: number): number | null {
  if (ageMs > givenUpAfterMs) return null;
  const grown = Math.min(longestMs, firstMs * 2 ** Math.min(tries - 1, 10));
  return grown * (0.75 + random / 4);
}
