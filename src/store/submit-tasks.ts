import type { TaskId } from '../domain/ids.js';
import type { Database, Instant, Queryable } from './database.js';
import { findByKey } from './find-by-key.js';
import { insertTasks, type Created } from './insert-tasks.js';
import type { NewTask, Submitted } from './new-task.js';
import { lockWorkflows, releaseHeads } from './release-heads.js';

/** Answers in order; rows get their seq in the order of the array. */
export async function submitTasks(
  db: Database,
  tasks: readonly NewTask[],
  now: Instant,
): Promise<Submitted[]> {
  const created = tasks.some((task) => task.workflowId !== null)
    ? await db.transaction((tx) => insertIntoWorkflows(tx, tasks, now))
    : await insertTasks(db, tasks, now);
  if (created.size === tasks.length) return tasks.map((task) => getFrom(created, task.taskId));

  const refused = tasks.filter((task) => !created.has(task.taskId));
  const known = await findByKey(db, refused);
  const gone = refused.filter((task) => !known.has(task.taskId));
  // The key was purged between the two statements: it is free again.
  const again = gone.length === 0 ? [] : await submitTasks(db, gone, now);
  const late = new Map(gone.map((task, n) => [task.taskId, again[n]]));
  return tasks.map(
    ({ taskId }) => created.get(taskId) ?? known.get(taskId) ?? getFrom(late, taskId),
  );
}

/** Members are inserted behind their workflow; those with nobody in front are then let go. */
async function insertIntoWorkflows(
  tx: Queryable,
  tasks: readonly NewTask[],
  now: Instant,
): Promise<Map<TaskId, Created>> {
  const workflowIds = tasks.flatMap((task) => task.workflowId ?? []);
  await lockWorkflows(tx, workflowIds);
  const created = await insertTasks(tx, tasks, now);
  for (const head of await releaseHeads(tx, workflowIds, now)) {
    const task = created.get(head.taskId);
    if (task !== undefined) created.set(head.taskId, { ...task, waitsFor: head.waitsFor });
  }
  return created;
}

function getFrom<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key): NonNullable<Value> {
  const value = map.get(key);
  if (value === undefined || value === null) {
    throw new Error(`nothing was answered for ${String(key)}`);
  }
  return value;
}
