import type { QueueWork } from '../domain/scaling.js';

/** How many workers there should be, and why. */
export interface Scaling {
  readonly desired: number;
  readonly current: number;
  readonly min: number;
  readonly max: number;
  /** Tasks that wait for nothing but a worker. */
  readonly waiting: number;
  readonly reason: string;
  readonly queues: readonly QueueWork[];
  readonly provisioner: {
    readonly kind: 'none' | 'process' | 'webhook';
    readonly lastAskedAt: Date | null;
    readonly failingSince: Date | null;
    readonly error: string | null;
  };
}
