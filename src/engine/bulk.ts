import type { TaskId } from '../domain/ids.js';
import type { Found } from '../store/find-in-bulk.js';

/** In one statement. */
export const maxAtOnce = 1_000;
/** A second's work or so: a million tasks are a hundred calls, not one that takes minutes. */
export const maxWalksInOneCall = 10;

export interface Batches<Cursor> {
  readonly find: (limit: number, after: Cursor | null) => Promise<Found<Cursor>>;
  /** Answers how many it changed: others may have been faster. */
  readonly act: (taskIds: readonly TaskId[]) => Promise<number>;
  /** Of tasks that are found. */
  readonly limit: number;
  /** Of times that it looks for more: each reads a bounded number of tasks, and may find none. */
  readonly walks: number;
  readonly after: Cursor | null;
}

/** Finds tasks and changes them, batch by batch. What was changed stays changed when a later batch fails. */
export async function inBatches<Cursor>(
  batches: Batches<Cursor>,
): Promise<{ readonly done: number; readonly next: Cursor | null }> {
  let { after: next, limit: left } = batches;
  let done = 0;
  for (let walk = 0; walk < batches.walks && left > 0; walk += 1) {
    const found = await batches.find(Math.min(maxAtOnce, left), next);
    done += await batches.act(found.taskIds);
    left -= found.taskIds.length;
    next = found.next;
    if (next === null) break;
  }
  return { done, next };
}
