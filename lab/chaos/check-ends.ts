import {
  finding,
  type Acknowledged,
  type ChaosHistory,
  type Finding,
  type TaskRow,
} from './history.js';

const ended = ['completed', 'cancelled', 'dead_letter', 'failed'];

/** Every task that was acknowledged has ended, once, as it was meant to. */
export function checkEnds(history: ChaosHistory): Finding[] {
  const rowsById = new Map<string, TaskRow[]>();
  for (const row of history.rows) {
    rowsById.set(row.taskId, [...(rowsById.get(row.taskId) ?? []), row]);
  }
  const leases = completingLeases(history);
  return [
    ...checkKeys(history),
    ...tasksOf(history).flatMap((task) => {
      const [row, ...more] = rowsById.get(task.taskId) ?? [];
      if (row === undefined) return [finding('lost', `${named(task)} is unknown`)];
      if (!ended.includes(row.status)) {
        return [finding('lost', `${named(task)} is still ${row.status}`)];
      }
      return [
        ...checkOnce(task, [row, ...more], leases.get(task.taskId) ?? new Set()),
        ...checkReason(task, row, history),
      ];
    }),
  ];
}

function tasksOf({ acknowledged }: ChaosHistory): readonly Acknowledged[] {
  return [...new Map(acknowledged.map((task) => [task.taskId, task])).values()];
}

/** With how many leases each task was completed, by what the servers answered. */
function completingLeases({ completions }: ChaosHistory): ReadonlyMap<string, Set<string>> {
  const leases = new Map<string, Set<string>>();
  for (const { taskId, lease } of completions) {
    leases.set(taskId, (leases.get(taskId) ?? new Set()).add(lease));
  }
  return leases;
}

function checkOnce(
  task: Acknowledged,
  rows: readonly TaskRow[],
  accepted: ReadonlySet<string>,
): Finding[] {
  if (rows.length > 1) {
    const statuses = rows.map(({ status }) => status).join(', ');
    return [finding('completed twice', `${named(task)} has ${rows.length} rows: ${statuses}`)];
  }
  if (accepted.size > 1) {
    return [finding('completed twice', `${named(task)} by ${accepted.size} attempts`)];
  }
  const [lease] = accepted;
  const [row] = rows;
  if (row === undefined) return [];
  const completing = row.attempts.find(({ outcome }) => outcome === 'succeeded');
  if (completing !== undefined && completing.attempt !== row.resultOf) {
    const whose = `attempt ${completing.attempt} has the result of ${row.resultOf ?? 'none'}`;
    return [finding('result not kept', `${named(task)}: ${whose}`)];
  }
  if (lease === undefined || row.lease === lease) return [];
  return [finding('result not kept', `${named(task)}: accepted, and it is ${row.status}`)];
}

/** Cancelled exactly when it was asked for, and given up never: retries are plenty. */
function checkReason(task: Acknowledged, row: TaskRow, { cancels }: ChaosHistory): Finding[] {
  const cancel = cancels.get(task.taskId);
  if (row.status === 'cancelled') {
    return cancel === undefined
      ? [finding('ended for no reason', `${named(task)}: cancelled`)]
      : [];
  }
  if (cancel === 'acknowledged') {
    return [finding('cancel not kept', `${named(task)} is ${row.status}`)];
  }
  return row.status === 'completed'
    ? []
    : [finding('ended for no reason', `${named(task)}: ${row.status}`)];
}

function checkKeys({ acknowledged, rows }: ChaosHistory): Finding[] {
  const ids = new Map<string, Set<string>>();
  const note = (key: string, taskId: string) =>
    ids.set(key, (ids.get(key) ?? new Set()).add(taskId));
  for (const { key, taskId } of acknowledged) note(key, taskId);
  for (const { key, taskId } of rows) if (key !== null) note(key, taskId);
  return [...ids]
    .filter(([, taskIds]) => taskIds.size > 1)
    .map(([key, taskIds]) => finding('one key, two tasks', `${key}: ${[...taskIds].join(', ')}`));
}

function named({ key, taskId }: Acknowledged): string {
  return `${key} (${taskId})`;
}
