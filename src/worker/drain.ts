import type { Held } from '../protocol/workers-api.js';
import type { Logger } from '../runtime/log.js';
import type { InFlight } from './in-flight.js';
import type { Reports } from './reports.js';
import type { Slots } from './slots.js';

export interface DrainOptions {
  readonly timeoutMs: number;
  readonly slots: Slots;
  readonly inFlight: InFlight;
  readonly reports: Reports;
  /** How long the leases still live at least: until then a result may be accepted. */
  readonly leaseLeftMs: () => number;
  readonly release: (held: readonly Held[]) => Promise<void>;
  readonly log: Logger;
}

/** What a handler gets to unwind after its signal fired, before its task is given back. */
const unwindMs = 1_000;

/** Nothing new comes in any more: finish what runs, give back at no cost what takes too long. */
export async function drain(options: DrainOptions): Promise<void> {
  const { timeoutMs, slots, inFlight, reports, leaseLeftMs, release, log } = options;
  const endsAt = performance.now() + timeoutMs;
  await slots.whenIdle(AbortSignal.timeout(timeoutMs));
  if (inFlight.size > 0) {
    log.warn({ tasks: inFlight.size }, 'out of time: the rest goes back to its queues');
    inFlight.abortAll('drain');
    await slots.whenIdle(AbortSignal.timeout(unwindMs));
    const held = inFlight.forgetAll();
    if (held.length > 0) await release(held);
  }
  const leftMs = Math.max(0, leaseLeftMs(), endsAt - performance.now());
  await reports.whenEmpty(AbortSignal.timeout(Math.ceil(leftMs)));
  reports.giveUp();
}
