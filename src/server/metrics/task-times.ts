import { Histogram, type Registry } from 'prom-client';
import { instantOf } from '../../domain/ids.js';
import { hasEnded } from '../../domain/task-state.js';
import type { TaskEvent } from '../../protocol/events.js';
import type { CountedPair } from './counted-pairs.js';

const waitBuckets = [0.005, 0.02, 0.1, 0.5, 1, 5, 15, 60, 300, 600, 1_200, 1_800, 3_600];
const durationBuckets = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600];
const assignmentBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];

/** How long tasks waited, ran and took in all. */
export function observeTimes(registry: Registry): (event: TaskEvent, pair: CountedPair) => void {
  const histogram = <Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: Label[] = [],
  ) => new Histogram({ name: `sluice_${name}`, help, buckets, labelNames, registers: [registry] });
  const wait = histogram('task_wait_seconds', 'From eligible to taken', waitBuckets, [
    'priority',
    'queue',
    'task_type',
  ]);
  const assignment = histogram(
    'task_assignment_seconds',
    'From the take out of the ready queue to the commit of the claim',
    assignmentBuckets,
  );
  const attempt = ['priority', 'status', 'queue', 'task_type'] as const;
  const execution = histogram('task_execution_seconds', 'How long attempts ran', durationBuckets, [
    ...attempt,
  ]);
  const duration = histogram('task_duration_seconds', 'From submit to end', durationBuckets, [
    ...attempt,
  ]);

  return (event, { timed: { queue, task_type } }) => {
    const { to, priority, outcome, waitMs, assignmentMs, durationMs } = event;
    if (waitMs !== undefined) wait.observe({ priority, queue, task_type }, waitMs / 1000);
    if (assignmentMs !== undefined) assignment.observe(assignmentMs / 1000);
    if (durationMs !== undefined) {
      const status = outcome ?? to;
      execution.observe({ priority, status, queue, task_type }, durationMs / 1000);
    }
    if (hasEnded(to)) {
      const seconds = Math.max(0, event.at.getTime() - instantOf(event.taskId)) / 1000;
      duration.observe({ priority, status: to, queue, task_type }, seconds);
    }
  };
}
