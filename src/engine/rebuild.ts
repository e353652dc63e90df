import { listRunning } from '../store/sweep-attempts.js';
import { walkQueued, type QueuedCursor } from '../store/walk-line.js';
import { instant, type EngineContext } from './context.js';
import type { QueueDirectory } from './queue-directory.js';
import type { Slots } from './slots.js';

const rowsAtOnce = 5_000;

/**
 * Fills the ready queue from Postgres: first settings and what runs, so that no take can pass a
 * limit, then everything queued. What is missed or doubled meanwhile is only a hint.
 */
export async function rebuild(
  context: EngineContext,
  queues: QueueDirectory,
  slots: Slots,
): Promise<void> {
  const { db, ready } = context;
  await queues.load();
  const running = await listRunning(db);
  await ready.restore({ queues: queues.all(), running });
  slots.restore(running);
  let cursor: QueuedCursor | null = null;
  do {
    const stretch: Awaited<ReturnType<typeof walkQueued>> = await walkQueued(
      db,
      cursor,
      rowsAtOnce,
      instant(context),
    );
    await ready.offer(stretch.rows);
    cursor = stretch.next;
  } while (cursor !== null);
}
