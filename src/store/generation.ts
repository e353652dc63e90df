import type { Queryable } from './database.js';

/**
 * The number of a new generation. Claims with an older one have committed by now, or claim nothing:
 * see `sluice.fenced_queues`. It waits for claims under way, up to 10 s, and they end by themselves.
 */
export async function beginGeneration(db: Queryable): Promise<number> {
  const [row] = await db.query<{ number: number | null }>(
    'select sluice.begin_generation() as number',
  );
  if (typeof row?.number !== 'number') throw new Error('the row that the migration made is gone');
  return row.number;
}

/** The one that claims are taken of now. */
export async function findGeneration(db: Queryable): Promise<number> {
  const [row] = await db.query<{ number: number }>('select number from sluice.generation');
  if (row === undefined) throw new Error('the row that the migration made is gone');
  return row.number;
}
