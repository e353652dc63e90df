import { existsSync, readFileSync } from 'node:fs';
import { openDatabase, type DatabaseOptions } from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import type { Attempt, Begin, Completion, TaskRow } from './history.js';

interface Row {
  readonly id: string;
  readonly key: string | null;
  readonly queue: string;
  readonly status: string;
  readonly seq: number;
  readonly attempt: number;
  readonly lease: string | null;
  readonly worker: string | null;
  readonly assigned_ms: number | null;
  readonly ended_ms: number | null;
  readonly result_of: number | null;
  readonly past: string;
}

interface PastAttempt {
  readonly attempt?: number;
  readonly worker_id?: string | null;
  readonly assigned_at?: string | null;
  readonly ended_at: string;
  readonly outcome?: string;
}

const rowsSql = `
with every_task as (
  select id, idempotency_key, queue, status, seq, attempt, lease, worker_id, assigned_at, ended_at,
    result, past_attempts
  from sluice.task_history
  union all
  select id, idempotency_key, queue, status, seq, attempt, lease, worker_id, assigned_at, ended_at,
    null, past_attempts
  from sluice.tasks
)
select id::text, idempotency_key as key, queue, status, seq::float8, attempt, lease::text,
  worker_id::text as worker,
  floor(extract(epoch from assigned_at) * 1000)::float8 as assigned_ms,
  floor(extract(epoch from ended_at) * 1000)::float8 as ended_ms,
  (result->>'attempt')::integer as result_of,
  to_json(past_attempts)::text as past
from every_task`;

/** What the database says when all is over. */
export async function readRows(options: DatabaseOptions): Promise<readonly TaskRow[]> {
  const db = await openDatabase(options, silentLog);
  try {
    const workers = await db.query<{ id: string; name: string }>(
      'select id::text, name from sluice.workers where name is not null',
    );
    const names = new Map(workers.map(({ id, name }) => [id, name]));
    const nameOf = (id: string | null | undefined) => (id && names.get(id)) ?? null;
    return (await db.query<Row>(rowsSql)).map((row) => toTaskRow(row, nameOf));
  } finally {
    await db.close();
  }
}

type NameOf = (workerId: string | null | undefined) => string | null;

function toTaskRow(row: Row, nameOf: NameOf): TaskRow {
  const past = (JSON.parse(row.past) as PastAttempt[]).flatMap((one) => pastAttempt(one, nameOf));
  return {
    taskId: row.id,
    key: row.key,
    queue: row.queue,
    status: row.status,
    seq: row.seq,
    endedAt: row.ended_ms,
    lease: row.lease,
    resultOf: row.result_of,
    attempts: [...past, ...lastAttempt(row, nameOf)],
  };
}

function pastAttempt(one: PastAttempt, nameOf: NameOf): Attempt[] {
  const { attempt, assigned_at: assignedAt, ended_at: endedAt, outcome } = one;
  if (attempt === undefined || !assignedAt || outcome === undefined) return [];
  const worker = nameOf(one.worker_id);
  return [{ attempt, worker, from: Date.parse(assignedAt), to: Date.parse(endedAt), outcome }];
}

/** The one that completed the task, or that still runs. */
function lastAttempt(row: Row, nameOf: NameOf): Attempt[] {
  if (row.assigned_ms === null) return [];
  const outcome = row.status === 'completed' ? 'succeeded' : 'running';
  const { attempt, assigned_ms: from, ended_ms: to } = row;
  return [{ attempt, worker: nameOf(row.worker), from, to, outcome }];
}

interface Note {
  readonly what: 'began' | 'ended' | 'accepted' | 'refused';
  readonly worker: string;
  readonly at: number;
  readonly taskId: string;
  readonly attempt?: number;
  readonly lease?: string;
}

export interface WorkerNotes {
  readonly begins: readonly Begin[];
  readonly completions: readonly Completion[];
  /** Results that came too late. */
  readonly refused: number;
}

export function readNotes(paths: readonly string[]): WorkerNotes {
  const notes = paths.flatMap(readLines);
  const of = (what: Note['what']) => notes.filter((note) => note.what === what);
  return {
    begins: of('began').map(({ taskId, attempt = 0, worker, at }) => ({
      taskId,
      attempt,
      worker,
      at,
    })),
    completions: of('accepted').map(({ taskId, lease = '' }) => ({ taskId, lease })),
    refused: of('refused').length,
  };
}

function readLines(path: string): Note[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Note);
}
