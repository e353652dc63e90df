/** More at once would not be faster, and a slow answer would hold up that many tasks. */
export const maxClaim = 50;

/** How many tasks to ask for: never more than can start at once, and 0 only when no slot is free. */
export function claimSize(freeSlots: number): number {
  return Math.min(freeSlots, maxClaim);
}
