import type { Wish } from '../../engine/scaler.js';

export type { Wish } from '../../engine/scaler.js';

/** Who starts workers, and lets them go. */
export interface Provisioner {
  readonly kind: 'process' | 'webhook';
  /** What its workers do, once that is known. */
  readonly taskTypes: readonly string[] | null;
  /**
   * Sees to it that there will be so many workers. Rejects when it can't, with a message that people
   * may read; it is asked again later, with the number of then.
   */
  request(wish: Wish, signal: AbortSignal): Promise<void>;
  /**
   * Another server asks from now on, or this one ends: what it started is let go. May be called
   * twice, or first; a later request begins anew.
   */
  stop(): Promise<void>;
}
