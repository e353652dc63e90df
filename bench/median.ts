/** Of an even number of values, what lies between the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN;
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  return (lower + upper) / 2;
}
