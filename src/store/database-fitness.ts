import { hidePassword } from '../runtime/hide-password.js';
import { DatabaseAwayError, DatabaseUnfitError, type Database } from './database.js';

export interface DatabaseFacts {
  readonly database: string;
  readonly role: string;
  readonly encoding: string;
  /** Of a single statement. */
  readonly isolation: string;
  readonly synchronousCommit: string;
  readonly isStandby: boolean;
  readonly isReadOnly: boolean;
  /** Where default_transaction_read_only was set, as pg_settings says it. */
  readonly readOnlySource: string;
}

/** Throws when the database can't be used as it is set up. */
export async function checkFitness(db: Database, url: string): Promise<void> {
  const facts = await readFacts(db);
  const problems = [encodingProblem(facts), readOnlyProblem(facts), isolationProblem(facts)];
  for (const problem of problems) {
    if (problem !== null) throw new DatabaseUnfitError(`${hidePassword(url)}: ${problem}`);
  }
  await checkTransactions(db, url);
}

export async function readFacts(db: Pick<Database, 'query'>): Promise<DatabaseFacts> {
  const [facts] = await db.query<DatabaseFacts>(
    `select current_database() as database, current_user as role,
       current_setting('server_encoding') as encoding,
       current_setting('transaction_isolation') as isolation,
       current_setting('synchronous_commit') as "synchronousCommit", pg_is_in_recovery() as "isStandby",
       current_setting('transaction_read_only')::boolean as "isReadOnly",
       (select source from pg_settings where name = 'default_transaction_read_only')
         as "readOnlySource"`,
  );
  if (facts === undefined) throw new Error('Postgres said nothing about itself');
  return facts;
}

/** Null: tasks may hold any text. */
function encodingProblem({ database, encoding }: DatabaseFacts): string | null {
  if (encoding === 'UTF8') return null;
  return (
    `the database "${database}" has the encoding ${encoding}; Sluice needs UTF8, because tasks ` +
    `hold any Unicode text.\nCreate another one: create database … encoding 'UTF8' template template0`
  );
}

/** Null: it accepts writes. */
function readOnlyProblem(facts: DatabaseFacts): string | null {
  if (facts.isStandby) {
    return (
      'this Postgres is a standby and accepts no writes.\n' +
      'Use the address of the primary, or name all hosts: ' +
      'postgres://user@host1,host2/database?target_session_attrs=read-write'
    );
  }
  if (!facts.isReadOnly) return null;
  const { where, remedy } = readOnlySetting(facts);
  return (
    `the role "${facts.role}" may only read: default_transaction_read_only is on, set for ${where}.\n` +
    `Run: ${remedy}`
  );
}

function readOnlySetting({ role, database, readOnlySource }: DatabaseFacts): {
  readonly where: string;
  readonly remedy: string;
} {
  const off = 'set default_transaction_read_only = off';
  switch (readOnlySource) {
    case 'user':
      return { where: 'this role', remedy: `alter role "${role}" ${off}` };
    case 'database user':
      return {
        where: 'this role in this database',
        remedy: `alter role "${role}" in database "${database}" ${off}`,
      };
    case 'database':
      return { where: 'this database', remedy: `alter database "${database}" ${off}` };
    default:
      return { where: 'the whole server', remedy: `alter system ${off}, then reload` };
  }
}

/** A pooler in statement mode ends the connection of a client that begins a transaction. */
async function checkTransactions(db: Database, url: string): Promise<void> {
  try {
    await db.transaction((tx) => tx.query('select'));
  } catch (error) {
    if (!isStatementPooling(error)) throw error;
    throw new DatabaseUnfitError(`${hidePassword(url)}: ${statementPoolingProblem}`, {
      cause: error,
    });
  }
}

const statementPoolingProblem =
  'this pooler gives each statement another connection (statement pooling); Sluice needs ' +
  'transactions.\nSet pool_mode = transaction in pgbouncer.ini.';

function isStatementPooling(error: unknown): boolean {
  const cause = error instanceof DatabaseAwayError ? error.cause : error;
  return cause instanceof Error && /statement pooling/i.test(cause.message);
}

/**
 * Behind a pooler a single statement begins its transaction before our settings arrive. A claim would
 * not see what was committed while it waited, so the role has to leave it at `read committed`.
 */
function isolationProblem({ role, isolation }: DatabaseFacts): string | null {
  if (isolation === 'read committed') return null;
  return (
    `behind a pooler default_transaction_isolation must be read committed, not ${isolation}.\n` +
    `Run: alter role "${role}" set default_transaction_isolation = 'read committed'`
  );
}
