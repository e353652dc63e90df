import type { TaskState } from '../../src/domain/task-state.js';
import type { Queryable } from '../../src/store/database.js';

/** One row that was written, as it was written; of a deleted one, as it was before. */
export interface Written extends TaskColumns {
  readonly place: 'living' | 'history';
  readonly deed: 'INSERT' | 'UPDATE' | 'DELETE';
}

/** Of `sluice.tasks` and `sluice.task_history`; some are in one of them only. */
interface TaskColumns {
  readonly id: string;
  readonly seq: number;
  readonly queue: string;
  readonly workflow_id: string | null;
  readonly halts_workflow: boolean;
  readonly status: TaskState;
  readonly waits_for?: string | null;
  readonly lease: string | null;
  readonly worker_id: string | null;
  readonly attempt: number;
  readonly retry_count: number;
  readonly max_retries: number;
  readonly result?: unknown;
  readonly progress_message: string | null;
  readonly past_attempts: readonly PastAttempt[];
}

export interface PastAttempt {
  readonly lease: string;
  readonly outcome: string;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/**
 * Writes down every change of a task, in the same transaction: what was changed and changed back
 * between two looks is seen as well.
 */
export const auditSchema = `
create schema simulation;

create sequence simulation.written_n;

create table simulation.written (
  n bigint not null default nextval('simulation.written_n'),
  place text not null,
  deed text not null,
  task jsonb not null
);

create function simulation.write_down() returns trigger language plpgsql as $$
begin
  insert into simulation.written (place, deed, task)
  values (
    case tg_table_name when 'tasks' then 'living' else 'history' end,
    tg_op,
    to_jsonb(case tg_op when 'DELETE' then old else new end)
  );
  return null;
end
$$;

create trigger write_down after insert or update or delete on sluice.tasks
  for each row execute function simulation.write_down();
create trigger write_down after insert or update or delete on sluice.task_history
  for each row execute function simulation.write_down();
`;

interface WrittenRow extends Pick<Written, 'place' | 'deed'> {
  readonly n: number;
  readonly task: TaskColumns;
}

/** Since it was last asked, in order. */
export async function takeWritten(db: Queryable): Promise<Written[]> {
  const rows = await db.query<WrittenRow>(
    'delete from simulation.written returning n, place, deed, task',
  );
  return rows
    .sort((one, other) => one.n - other.n)
    .map(({ task, place, deed }) => ({ ...task, place, deed }));
}
