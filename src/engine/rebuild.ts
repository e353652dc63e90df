import { beginGeneration, findGeneration } from '../store/generation.js';
import { listRunning } from '../store/sweep-attempts.js';
import { walkQueued, type QueuedCursor } from '../store/walk-line.js';
import type { Checkpoints } from './checkpoints.js';
import { instant, type EngineContext } from './context.js';
import type { QueueDirectory } from './queue-directory.js';

const rowsAtOnce = 5_000;

export type Rebuilt = 'anew' | 'open' | 'closed';

/**
 * Fills the ready queue from Postgres. First it ends the generation of the contents that were lost:
 * claims of what was taken from them are waited for, and refused from then on. Then limits,
 * settings and what runs, so that no take can pass a limit; then everything queued. What is missed or
 * doubled meanwhile is only a hint. `closed`: another process is at it, or the queue is away.
 */
export async function rebuild(
  context: EngineContext,
  queues: QueueDirectory,
  checkpoints: Checkpoints,
): Promise<Rebuilt> {
  const { db, ready, log } = context;
  const begun = await ready.beginRestore(await findGeneration(db));
  if (begun !== 'yours') return begun === 'open' ? 'open' : 'closed';
  const generation = await beginGeneration(db);
  await queues.load();
  const configuration = queues.configuration();
  const running = await listRunning(db, instant(context));
  const levels = await checkpoints.restore(configuration, running);
  const isOurs = await ready.restore({ generation, ...configuration, levels, running });
  if (!isOurs) return 'closed';
  await queues.tellAll();
  const offered = await offerQueued(context);
  const filled = { generation, running: running.length, offered };
  log[running.length + offered > 0 ? 'info' : 'debug'](filled, 'filled the ready queue anew');
  return 'anew';
}

async function offerQueued(context: EngineContext): Promise<number> {
  const { db, ready } = context;
  let cursor: QueuedCursor | null = null;
  let offered = 0;
  do {
    const stretch: Awaited<ReturnType<typeof walkQueued>> = await walkQueued(
      db,
      cursor,
      rowsAtOnce,
      instant(context),
    );
    await ready.offer(stretch.rows);
    offered += stretch.rows.length;
    cursor = stretch.next;
  } while (cursor !== null);
  return offered;
}
