import type { Queryable } from './database.js';

/** The same for as long as the schema lives, and never that of another. */
export async function findInstallationId(db: Queryable): Promise<string> {
  const id = (await readId(db)) ?? (await makeId(db));
  if (id === null) throw new Error('sluice.installation has no row, and none could be inserted');
  return id;
}

async function readId(db: Queryable): Promise<string | null> {
  const [row] = await db.query<{ id: string }>('select id from sluice.installation where only_row');
  return row?.id ?? null;
}

/** A data image has no row, so that two copies of it never share an id. */
async function makeId(db: Queryable): Promise<string | null> {
  await db.query('insert into sluice.installation default values on conflict do nothing');
  return readId(db);
}
