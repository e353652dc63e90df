import type { WorkerId } from '../domain/ids.js';
import type { Taken } from '../ready/ready-queue.js';

/** Somebody took an entry, and wants its task. */
export interface Wish {
  readonly entry: Taken;
  readonly generation: number;
  readonly takenMs: number;
  readonly workerId: WorkerId;
  readonly start: boolean;
}
