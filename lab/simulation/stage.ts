import { readFileSync } from 'node:fs';

import type { Database } from '../../src/store/database.js';
import { migrate } from '../../src/store/migrate.js';
import { ensurePartitions } from '../../src/store/partitions.js';
import { openPgliteDatabase } from '../../src/store/pglite-database.js';
import { auditSchema } from './audit.js';
import { VirtualChance } from './virtual-chance.js';
import { VirtualTime } from './virtual-time.js';

const beganMs = Date.UTC(2030, 0, 1, 12);
const daysAhead = 8;

/** What one process has once, and every life begins on: embedded Postgres, empty, time and chance. */
export interface Stage {
  readonly db: Database;
  readonly time: VirtualTime;
  readonly chance: VirtualChance;
  /** How many have begun on it. */
  lives: number;
}

/** `image`: the file of a data image to begin with. */
export async function openStage(image?: string): Promise<Stage> {
  const db = await openPgliteDatabase(image === undefined ? {} : { image: readFileSync(image) });
  await migrate(db);
  await ensurePartitions(db, daysAhead, new Date(beganMs));
  await db.run(auditSchema);
  // Rows that are found by their ids are changed in the order of their ids, not in that of a plan that may
  // be another one after some lives.
  await db.run('set enable_bitmapscan = off');
  return { db, time: VirtualTime.install(), chance: VirtualChance.install(), lives: 0 };
}

/**
 * All tables there are, so that those to come are emptied as well. Truncated, since rows are found in the
 * order in which they lie; but for partitions, which are many, and whose rows are found by their ids.
 */
const emptySql = `
do $$
declare
  parted text;
  plain text;
begin
  select
    string_agg(format('delete from %s;', c.oid::regclass), ' ') filter (where c.relkind = 'p'),
    string_agg(c.oid::regclass::text, ', ') filter (where c.relkind = 'r')
  into parted, plain
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ('sluice', 'simulation') and c.relkind in ('r', 'p')
    and not c.relispartition and c.relname <> 'migrations'
    -- A row that is always there.
    and not exists (select from pg_attribute where attrelid = c.oid and attname = 'only_row');
  execute parted;
  execute 'truncate sluice.serving, ' || plain;
  update sluice.generation set number = 0;
  update sluice.admission_check set checked_at = '-infinity';
  insert into sluice.admission (scope) values ('');
  insert into sluice.departures (scope, slot) select '', slot from generate_series(0, 7) as slot;
  perform setval(c.oid::regclass, 1, false) from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ('sluice', 'simulation') and c.relkind = 'S';
end
$$;`;

const tidyEvery = 50;

export async function resetStage(stage: Stage, seed: number): Promise<void> {
  stage.time.reset(beganMs);
  stage.chance.reset(seed);
  await stage.db.urgent.run(emptySql);
  // It gives way to others by the time since it last did: that is now.
  const asked = stage.db.query('select');
  await stage.time.pass(0);
  await asked;
  stage.lives += 1;
  if (stage.lives % tidyEvery === 0) await stage.db.urgent.run('vacuum;');
}
