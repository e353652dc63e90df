/**
 * Pieces of Prometheus expressions. Gauges are the cluster's and every server exports them: the greatest counts. Counters
 * are each server's own: their sum counts.
 */
export const gauge = (metric: string): string => `max(${metric})`;

export const increase = (metric: string, range: '1m' | '5m' | '1h'): string =>
  `(sum(increase(${metric}[${range}])) or vector(0))`;

/** Not `sluice_tasks_total`, whose series of a new queue begins with its first burst: `increase` would not see that. */
export const completed = (range: '1m' | '5m' | '1h'): string =>
  increase('sluice_task_state_transitions_total{to="completed"}', range);

export const retried = (range: '1m' | '5m' | '1h'): string =>
  increase('sluice_task_retries_total', range);

/** Attempts that failed: those that cost a retry, and those that ended their task. */
export const failed = (range: '1m' | '5m'): string =>
  `(${retried(range)} + ${increase('sluice_tasks_failed_total', range)})`;

export const waiting = 'sum(max by (queue, priority) (sluice_queue_depth))';

export const livingWorkers = 'sum(max by (status) (sluice_workers{status=~"active|draining"}))';
