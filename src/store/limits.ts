import type { RateLimit } from '../domain/queue-settings.js';
import type { LimitView } from '../protocol/api.js';
import type { Database, Queryable } from './database.js';

interface LimitRow {
  name: string;
  unit: string;
  rate: number;
  per_seconds: number;
  burst: number | null;
}

const columns = 'name, unit, rate, per_seconds, burst';

export async function listLimits(db: Queryable): Promise<LimitView[]> {
  const rows = await db.query<LimitRow>(`select ${columns} from sluice.limits order by name`);
  return rows.map(toView);
}

export async function findLimit(db: Queryable, name: string): Promise<LimitView | null> {
  const [row] = await db.query<LimitRow>(`select ${columns} from sluice.limits where name = $1`, [
    name,
  ]);
  return row === undefined ? null : toView(row);
}

export async function putLimit(db: Queryable, name: string, limit: RateLimit): Promise<LimitView> {
  const [row] = await db.query<LimitRow>(
    `insert into sluice.limits as l (name, unit, rate, per_seconds, burst)
     values ($1, $2, $3::bigint, $4::int, $5::bigint)
     on conflict (name) do update set
       version = l.version + 1, unit = excluded.unit, rate = excluded.rate,
       per_seconds = excluded.per_seconds, burst = excluded.burst
     returning ${columns}`,
    [name, limit.unit, limit.rate, limit.perSeconds, limit.burst],
  );
  if (row === undefined) throw new Error(`limit ${name} was neither inserted nor updated`);
  return toView(row);
}

export function deleteLimit(db: Database, name: string): Promise<'deleted' | 'missing' | 'in_use'> {
  return db.transaction(async (tx) => {
    // First the lock that putQueue shares, then, in a statement of its own, the look at the
    // queues: it sees every queue that was put with this limit before.
    const [limit] = await tx.query('select from sluice.limits where name = $1 for update', [name]);
    if (limit === undefined) return 'missing';
    const deleted = await tx.query(
      `delete from sluice.limits
       where name = $1 and not exists (
         select from sluice.queues q cross join json_array_elements(q.limits) used
         where used ->> 'use' = $1
       )
       returning name`,
      [name],
    );
    return deleted.length === 0 ? 'in_use' : 'deleted';
  });
}

export async function unknownLimits(db: Queryable, names: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ name: string }>(
    `select distinct name from unnest($1::text[]) as name
     where not exists (select from sluice.limits l where l.name = name.name)
     order by name`,
    [names],
  );
  return rows.map((row) => row.name);
}

function toView(row: LimitRow): LimitView {
  return {
    name: row.name,
    unit: row.unit,
    rate: row.rate,
    perSeconds: row.per_seconds,
    burst: row.burst,
  };
}
