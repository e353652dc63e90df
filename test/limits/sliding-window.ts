/** The most that falls into any half-open window of this length. */
export function mostInWindow(
  events: readonly { readonly atMs: number; readonly amount: number }[],
  windowMs: number,
): number {
  const sorted = [...events].sort((a, b) => a.atMs - b.atMs);
  let most = 0;
  let sum = 0;
  let first = 0;
  for (const { atMs, amount } of sorted) {
    sum += amount;
    for (let oldest = sorted[first]; oldest && oldest.atMs <= atMs - windowMs;) {
      sum -= oldest.amount;
      first += 1;
      oldest = sorted[first];
    }
    most = Math.max(most, sum);
  }
  return most;
}
