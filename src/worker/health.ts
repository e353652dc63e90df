/** What a worker knows of itself. */
export interface WorkerCondition {
  readonly isRegistered: boolean;
  /** It finishes what it has and takes nothing new. */
  readonly isDraining: boolean;
  /** Heartbeats in a row that the server did not acknowledge. */
  readonly failedHeartbeats: number;
  /** Since the last acknowledged heartbeat was sent. */
  readonly sinceHeartbeatMs: number;
  readonly heartbeatIntervalMs: number;
  /** The longest delay of the last second. */
  readonly eventLoopDelayMs: number;
}

/** Whether a worker works, and why not. */
export interface WorkerHealth {
  readonly isHealthy: boolean;
  /** Healthy, and it takes new tasks. */
  readonly isReady: boolean;
  /** Null: healthy and ready. */
  readonly reason: string | null;
}

/** One heartbeat may get lost on the way. */
const maxFailedHeartbeats = 1;
const maxIntervals = 2;
const maxEventLoopDelayMs = 1_000;

export function judgeHealth(condition: WorkerCondition): WorkerHealth {
  const fault = findFault(condition);
  if (fault !== null) return { isHealthy: false, isReady: false, reason: fault };
  if (condition.isDraining) {
    return { isHealthy: true, isReady: false, reason: 'The worker drains: it takes no new tasks.' };
  }
  return { isHealthy: true, isReady: true, reason: null };
}

function findFault(condition: WorkerCondition): string | null {
  const { isRegistered, failedHeartbeats, sinceHeartbeatMs, eventLoopDelayMs } = condition;
  if (!isRegistered) return 'The worker has not registered at its server yet.';
  if (
    failedHeartbeats > maxFailedHeartbeats ||
    sinceHeartbeatMs > maxIntervals * condition.heartbeatIntervalMs
  ) {
    const seconds = Math.round(sinceHeartbeatMs / 1000);
    return `The server has acknowledged no heartbeat for ${seconds} s.`;
  }
  if (eventLoopDelayMs > maxEventLoopDelayMs) {
    return `The event loop was blocked for ${Math.round(eventLoopDelayMs)} ms.`;
  }
  return null;
}
