import type { WorkerHealth } from '../../worker/health.js';
import type { MetricsSnapshot } from '../../worker/metrics.js';

/** What a process of a worker says to its parent. */
export type FromProcess =
  | { readonly sluice: 'waiting' }
  | { readonly sluice: 'ready'; readonly taskTypes: readonly string[]; readonly capacity: number }
  /** It could not start, for a reason that a person can read. */
  | { readonly sluice: 'failed'; readonly message: string }
  /** It leaves by itself. Too old: another takes its place; idle, or told to by the server: none. */
  | { readonly sluice: 'leaving'; readonly why: 'too_old' | 'not_needed' }
  | { readonly sluice: 'metrics'; readonly snapshot: MetricsSnapshot }
  | { readonly sluice: 'health'; readonly health: WorkerHealth };

/** What the parent says. */
export interface ToProcess {
  readonly sluice: 'drain' | 'metrics' | 'health';
}

/** A handler may use the channel too, for what it likes: that is not ours. */
export function isOurs(message: unknown): message is { readonly sluice: string } {
  return typeof message === 'object' && message !== null && 'sluice' in message;
}
