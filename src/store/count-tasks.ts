import type { TaskId } from '../domain/ids.js';
import type { BulkAction } from '../protocol/bulk-api.js';
import type { TaskFilter } from '../protocol/tasks-api.js';
import { isWantedBy, livingFor, tablesOf, type Tables } from './bulk-candidates.js';
import type { Queryable } from './database.js';
import { filterValues, ofFilter } from './task-filter.js';
import { lastTaskId, maxScannedRows } from './task-walk.js';
import { isAboveFloor, walkNewest } from './walk-newest.js';

export interface CountedTasks {
  readonly count: number;
  /** Tasks that were looked at. */
  readonly scanned: number;
  /** Older ones were not looked at; null: all were. */
  readonly next: TaskId | null;
}

/** Newest first, `maxScannedRows` of each table at most. */
export async function countTasks(
  db: Queryable,
  filter: TaskFilter,
  action: BulkAction | undefined,
  before: TaskId = lastTaskId,
): Promise<CountedTasks> {
  const [row] = await db.query<{ count: number; scanned: number; floor: TaskId | null }>(
    countStatement(livingFor(action, filter), tablesOf(action, filter.status), isWantedBy(action)),
    [...filterValues(filter), filter.status ?? null, before, maxScannedRows],
  );
  return { count: row?.count ?? 0, scanned: row?.scanned ?? 0, next: row?.floor ?? null };
}

function countStatement(living: string, tables: Tables, isWanted: string): string {
  return `
    with ${walkNewest(living, tables)}
    select count(task.id) as scanned,
      count(task.id) filter (where ${isWanted} and ${ofFilter}) as count,
      floor.id as floor
    from floor left join walk task on ${isAboveFloor}
    group by floor.id`;
}
