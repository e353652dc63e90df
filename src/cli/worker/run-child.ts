import { setTimeout as delay } from 'node:timers/promises';
import { describeFailure } from '../failure.js';
import { leaveSoon, untilOrphanedOrSignalled } from '../shutdown.js';
import { isOurs, type FromProcess, type ToProcess } from './messages.js';
import { openWorker, startPatiently, type OpenedWorker } from './open-worker.js';
import { lifetimeMs, type WorkerCommandOptions } from './options.js';

/** The worker in a process that a parent looks after: it tells the parent, and people nothing. */
export async function runChild(options: WorkerCommandOptions): Promise<void> {
  // From the first moment: a module may take its time to load, or never come to an end.
  const stopAsked = untilStopAsked();
  try {
    const opened = await Promise.race([openWorker(options), stopAsked]);
    if (opened !== undefined) await work(opened, options, stopAsked);
  } catch (error) {
    await tell({ sluice: 'failed', message: describeFailure(error) });
    process.exitCode = 1;
  } finally {
    if (process.connected) process.disconnect();
    leaveSoon();
  }
}

async function work(
  { worker, taskTypes, metrics }: OpenedWorker,
  options: WorkerCommandOptions,
  stopAsked: Promise<void>,
): Promise<void> {
  const tellMetrics = async () => {
    if (metrics === null) return;
    await tell({ sluice: 'metrics', snapshot: await metrics.registry.getMetricsAsJSON() });
  };
  onMessage('metrics', () => void tellMetrics());
  onMessage('health', () => void tell({ sluice: 'health', health: worker.health }));
  const leaving = worker.stopped.then(() => 'not_needed' as const);
  const started = startPatiently(worker, () => void tell({ sluice: 'waiting' }));
  await Promise.race([started, stopAsked, leaving]);
  if (worker.id !== null) {
    await tell({ sluice: 'ready', taskTypes, capacity: worker.capacity });
  }
  const why = await Promise.race([leaving, untilTooOld(options), stopAsked]);
  if (why !== undefined) await tell({ sluice: 'leaving', why });
  await worker.stop();
  await tellMetrics();
}

function untilTooOld(options: WorkerCommandOptions): Promise<'too_old'> {
  const maxMs = lifetimeMs(options);
  return maxMs === null
    ? new Promise(() => undefined)
    : delay(maxMs, 'too_old' as const, { ref: false });
}

function untilStopAsked(): Promise<void> {
  const told = new Promise<void>((resolve) => onMessage('drain', resolve));
  return Promise.race([told, untilOrphanedOrSignalled()]);
}

function onMessage(kind: ToProcess['sluice'], act: () => void): void {
  process.on('message', (message) => {
    if (isOurs(message) && message.sluice === kind) act();
  });
}

/** A parent that is gone is not told any more. */
function tell(message: FromProcess): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
}
