import { DatabaseUnfitError, type Queryable } from './database.js';

/** Not to_regnamespace: inside a transaction it goes on saying "not there" after another made it. */
export async function hasSchema(db: Queryable): Promise<boolean> {
  const rows = await db.query(`select from pg_catalog.pg_namespace where nspname = 'sluice'`);
  return rows.length > 0;
}

/** `change`: to bring the schema up to date, and to give days their partitions. */
type Wanted = 'read' | 'change';

/** Throws with the statement that gives the missing right. */
export async function checkRights(db: Queryable, wanted: Wanted): Promise<void> {
  const problem = await findRightsProblem(db, wanted);
  if (problem !== null) throw new DatabaseUnfitError(problem);
}

/** Null: the role may do so. */
export async function findRightsProblem(db: Queryable, wanted: Wanted): Promise<string | null> {
  const [who] = await db.query<{ role: string; database: string; may_create: boolean }>(
    `select current_user as role, current_database() as database,
       has_database_privilege(current_database(), 'create') as may_create`,
  );
  if (who === undefined) throw new Error('Postgres did not say who we are');
  const { role, database } = who;
  if (await hasSchema(db)) return findSchemaProblem(db, role, wanted);
  if (who.may_create || wanted === 'read') return null;
  return (
    `The role "${role}" may not create the schema sluice in the database "${database}".\n` +
    `Run as the owner of the database: create schema sluice authorization "${role}"`
  );
}

async function findSchemaProblem(
  db: Queryable,
  role: string,
  wanted: Wanted,
): Promise<string | null> {
  const [rights] = await db.query<{ may_use: boolean; may_create: boolean }>(
    `select has_schema_privilege('sluice', 'usage') as may_use,
       has_schema_privilege('sluice', 'create') as may_create`,
  );
  const missing = [
    ...(rights?.may_use === true ? [] : ['usage']),
    ...(rights?.may_create === true || wanted === 'read' ? [] : ['create']),
  ].join(', ');
  if (missing !== '') {
    return (
      `The role "${role}" may not use the schema sluice: it lacks ${missing}.\n` +
      `Run as its owner: grant usage, create on schema sluice to "${role}"`
    );
  }
  return wanted === 'read' ? null : findOwnerProblem(db, role);
}

/** Days get partitions and lose them: only an owner may do that. */
async function findOwnerProblem(db: Queryable, role: string): Promise<string | null> {
  const [other] = await db.query<{ name: string; owner: string }>(
    `select c.relname as name, pg_get_userbyid(c.relowner) as owner
     from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'sluice' and c.relkind in ('r', 'p') and not pg_has_role(c.relowner, 'usage')
     order by c.relname limit 1`,
  );
  if (other === undefined) return null;
  return (
    `The role "${role}" does not own the table sluice.${other.name}, which belongs to "${other.owner}".\n` +
    `Run: grant "${other.owner}" to "${role}", or connect as "${other.owner}"`
  );
}
