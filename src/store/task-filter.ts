import { likePatterns, unconfined } from '../domain/confinement.js';
import type { TaskFilter } from '../protocol/tasks-api.js';

/**
 * Whether a task aliased `task` matches a filter, its status apart: what that asks depends on what is done
 * with the tasks. The first seven parameters are `filterValues`, so that an owner is $6.
 */
export const ofFilter = `
  ($1::text is null or task.queue = $1)
  and ($2::text is null or task.task_type = $2)
  and ($3::text is null or task.user_id = $3)
  and ($4::text is null or task.workflow_id = $4)
  and ($5::text is null or $5 = any(task.tags))
  and ($6::text is null or task.owner = $6)
  and ($7::text[] is null or task.queue like any($7))`;

export function filterValues(filter: TaskFilter): unknown[] {
  const { queue, taskType, userId, workflowId, tag, within = unconfined } = filter;
  return [
    ...[queue ?? null, taskType ?? null, userId ?? null, workflowId ?? null, tag ?? null],
    ...[within.owner, likePatterns(within)],
  ];
}
