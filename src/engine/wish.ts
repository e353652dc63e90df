import type { WorkerId } from '../domain/ids.js';
import type { Taken } from '../ready/ready-queue.js';

/** How long the slot of a taken entry is kept for its claim. */
export const unclaimedMs = 10_000;
/** What was taken longer ago is not claimed any more. */
export const staleMs = 5_000;
/** What was claimed as late as this is not handed out: its slot may be given to others soon, or was. */
export const lateMs = 8_000;

/** Somebody took an entry, and wants its task. */
export interface Wish {
  readonly entry: Taken;
  readonly generation: number;
  /** Not later than it was taken. */
  readonly takenMs: number;
  readonly workerId: WorkerId;
  readonly start: boolean;
}
