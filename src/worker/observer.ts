import type { Logger } from '../runtime/log.js';

/** What metrics want to know of a worker as it happens; the rest can be read off it when asked. */
export interface WorkerObserver {
  /** A poll was answered. */
  readonly claimed: (asked: number, received: number) => void;
  /** The server did not acknowledge a heartbeat. */
  readonly heartbeatFailed?: () => void;
  /** An attempt is over here. Abandoned: cancelled, its lease lost, or given back. */
  readonly ended: (
    taskType: string,
    outcome: 'completed' | 'failed' | 'abandoned',
    seconds: number,
  ) => void;
}

/** Who only looks on must not disturb: what it throws is logged, and it has answered null. */
export function tell<Answer>(log: Logger, news: () => Answer): Answer | null {
  try {
    return news();
  } catch (error) {
    log.error({ err: error }, 'an observer of the worker threw');
    return null;
  }
}
