import type { Lease } from '../domain/ids.js';
import type { Held } from '../protocol/workers-api.js';
import { heldColumns } from './columns.js';
import type { Queryable } from './database.js';

/** By primary key, one look each: "offset 0" keeps the planner from turning it into a join. */
const findHeldSql = `
select held.lease, found.workflow_id
from
  unnest($1::uuid[], $2::uuid[]) as held (id, lease),
  lateral (select lease, workflow_id from sluice.tasks where id = held.id offset 0) as found
where found.lease = held.lease`;

interface HeldRow {
  readonly lease: Lease;
  readonly workflow_id: string | null;
}

/**
 * Writes that match on id and lease find their row by its place in the table, which is the only
 * join that no statistics can spoil. But a row that another transaction moves in that very moment
 * is not at its place any more, and would be taken for a lost lease. So what did not come back is
 * looked up, and written again if its lease is still good. Usually all come back, and it costs nothing.
 */
export async function writeFenced<Item extends Held, Row extends { readonly lease: Lease }>(
  db: Queryable,
  items: readonly Item[],
  write: (items: readonly Item[]) => Promise<Row[]>,
  writeAgain: (items: readonly Item[], workflowIds: readonly string[]) => Promise<Row[]> = write,
): Promise<Row[]> {
  const written = await write(items);
  let rest = without(items, written);
  while (rest.length > 0) {
    const held = await db.query<HeldRow>(findHeldSql, heldColumns(rest));
    if (held.length === 0) break;
    const good = new Set(held.map((row) => row.lease));
    const workflowIds = held.flatMap((row) => row.workflow_id ?? []);
    const rows = await writeAgain(
      rest.filter((item) => good.has(item.lease)),
      workflowIds,
    );
    written.push(...rows);
    rest = without(rest, rows);
  }
  return written;
}

function without<Item extends Held>(
  items: readonly Item[],
  rows: readonly { readonly lease: Lease }[],
): Item[] {
  const there = new Set(rows.map((row) => row.lease));
  return items.filter((item) => !there.has(item.lease));
}
