import { grantIn } from '../domain/lease.js';
import type { Window } from '../ready/ready-queue.js';
import { beginGeneration, findGeneration } from '../store/generation.js';
import { listRunning, type RunningRow } from '../store/sweep-attempts.js';
import { findWindows } from '../store/walk-line.js';
import type { Checkpoints } from './checkpoints.js';
import { instant, type EngineContext } from './context.js';
import type { QueueDirectory } from './queue-directory.js';

const windowsAtOnce = 5_000;

export type Rebuilt =
  { readonly kind: 'anew'; readonly generation: number } | { readonly kind: 'open' | 'closed' };

/**
 * Fills the ready queue from Postgres. First it ends the generation of the contents that were lost:
 * claims of what was taken from them are waited for, and refused from then on. Then limits,
 * settings and what runs, so that no take can pass a limit, and which windows have a line: the feeder
 * fills them. What came into line meanwhile was refused by the closed queue, and whoever offered it
 * says so when it is open. `closed`: another process is at it, or the queue is away.
 */
export async function rebuild(
  context: EngineContext,
  queues: QueueDirectory,
  checkpoints: Checkpoints,
): Promise<Rebuilt> {
  const { db, ready, log } = context;
  const begun = await ready.beginRestore(await findGeneration(db));
  if (begun !== 'yours') return { kind: begun === 'open' ? 'open' : 'closed' };
  const generation = await beginGeneration(db);
  await queues.load();
  const configuration = queues.configuration();
  const running = (await listRunning(db, instant(context))).map(named);
  const levels = await checkpoints.restore(configuration, running);
  const behind = await findLines(context);
  const isOurs = await ready.restore({ generation, ...configuration, levels, running, behind });
  if (!isOurs) return { kind: 'closed' };
  // Something may have changed meanwhile.
  await queues.settle();
  const filled = { generation, running: running.length, windows: behind.length };
  log[running.length + behind.length > 0 ? 'info' : 'debug'](filled, 'began the ready queue anew');
  return { kind: 'anew', generation };
}

/** Its end may be told by a server that knows nothing of this one: both read it from the lease. */
function named(row: RunningRow) {
  return { ...row, grant: grantIn(row.lease) };
}

async function findLines({ db }: EngineContext): Promise<Window[]> {
  const windows: Window[] = [];
  for (;;) {
    const found = await findWindows(db, windowsAtOnce, windows.at(-1) ?? null);
    windows.push(...found);
    if (found.length < windowsAtOnce) return windows;
  }
}
