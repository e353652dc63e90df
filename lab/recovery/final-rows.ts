import type { LabDatabase } from '../shared/database.js';

export interface FinalRows {
  readonly completed: number;
  /** Living, dead letters included. */
  readonly left: number;
  readonly mostRetries: number;
  readonly leastRetries: number;
  /** Of those that completed. */
  readonly mostPastAttempts: number;
}

export async function readFinalRows(database: LabDatabase): Promise<FinalRows> {
  const [row] = await database.query<FinalRows>(`
    select
      count(*) filter (where status = 'completed')::integer as completed,
      (select count(*)::integer from sluice.tasks) as left,
      coalesce(max(retry_count), 0)::integer as "mostRetries",
      coalesce(min(retry_count), 0)::integer as "leastRetries",
      coalesce(max(cardinality(past_attempts)), 0)::integer as "mostPastAttempts"
    from sluice.task_history`);
  if (row === undefined) throw new Error('an aggregate without groups answered no row');
  return row;
}

export async function countCompletedOf(
  database: LabDatabase,
  taskIds: readonly string[],
): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    `select count(distinct id)::integer as count from sluice.task_history
     where status = 'completed' and id = any($1::uuid[])`,
    [taskIds],
  );
  return row?.count ?? 0;
}
