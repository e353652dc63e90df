import { priorities } from '../../domain/priority.js';
import type { ListedTask } from '../../protocol/tasks-api.js';
import { printLine, printTable } from '../output.js';
import { readableSeconds } from '../readable.js';

export interface Tally {
  readonly submitted: number;
  readonly completed: number;
  /** Accepted, but the server knows nothing of it. */
  readonly lost: number;
}

export function tally(submitted: ReadonlySet<string>, found: readonly ListedTask[]): Tally {
  const ours = found.filter(({ taskId }) => submitted.has(taskId));
  const completed = ours.filter(({ status }) => status === 'completed').length;
  return { submitted: submitted.size, completed, lost: submitted.size - ours.length };
}

export function describeTally({ submitted, completed, lost }: Tally): string {
  return `${submitted} submitted, ${completed} completed, ${lost} lost`;
}

export function printSummary(tasks: readonly ListedTask[], queues: readonly string[]): void {
  printTable(
    [
      { title: 'queue' },
      { title: 'tasks', align: 'right' },
      { title: 'per second', align: 'right' },
      { title: 'wait p50', align: 'right' },
      { title: 'wait p95', align: 'right' },
      { title: 'retried', align: 'right' },
    ],
    [
      ...queues.map((queue) =>
        row(
          queue,
          tasks.filter((task) => task.queue === queue),
        ),
      ),
      row('all', tasks),
    ],
  );
  const waits = priorities.map((priority) => {
    const ofPriority = tasks.filter((task) => task.priority === priority);
    return `${priority} ${readableSeconds(quantile(waitsOf(ofPriority), 0.5))}`;
  });
  printLine();
  printLine(`Half of them waited less than: ${waits.join(', ')}`);
}

function row(title: string, tasks: readonly ListedTask[]): string[] {
  const waits = waitsOf(tasks);
  return [
    title,
    String(tasks.length),
    perSecond(tasks).toFixed(1),
    readableSeconds(quantile(waits, 0.5)),
    readableSeconds(quantile(waits, 0.95)),
    String(tasks.filter(({ attempt }) => attempt > 1).length),
  ];
}

/** From submit to the start of the last attempt. */
function waitsOf(tasks: readonly ListedTask[]): number[] {
  return tasks.flatMap(({ createdAt, startedAt }) =>
    startedAt === null ? [] : [(startedAt.getTime() - createdAt.getTime()) / 1000],
  );
}

function perSecond(tasks: readonly ListedTask[]): number {
  const times = (pick: (task: ListedTask) => Date | null) =>
    tasks.map(pick).flatMap((time) => (time === null ? [] : [time.getTime()]));
  const first = times(({ createdAt }) => createdAt).reduce((a, b) => Math.min(a, b), Infinity);
  const last = times(({ completedAt }) => completedAt).reduce((a, b) => Math.max(a, b), 0);
  return last > first ? (tasks.length * 1000) / (last - first) : 0;
}

/** The smallest value that this share of all does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}
