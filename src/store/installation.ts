import type { Queryable } from './database.js';

/** The same for as long as the schema lives, and never that of another. */
export async function findInstallationId(db: Queryable): Promise<string> {
  const [row] = await db.query<{ id: string }>('select id from sluice.installation where only_row');
  if (row === undefined) throw new Error('the row that the migration made is gone');
  return row.id;
}
