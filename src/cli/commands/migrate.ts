import type { Command } from 'commander';
import type { ServeConfig } from '../../runtime/config.js';
import { hidePassword } from '../../runtime/hide-password.js';
import { printLine } from '../output.js';
import { loadServeConfig, withDatabaseOptions } from '../serve-config.js';

export function migrateCommand(program: Command): void {
  const command = program
    .command('migrate')
    .description('Bring the schema up to date; "serve" does so by itself');
  withDatabaseOptions(command).action(async () => runMigrate(command));
}

async function runMigrate(command: Command): Promise<void> {
  const { database } = await loadServeConfig(command);
  const [{ openDatabase }, { migrate }, { silentLog }] = await Promise.all([
    import('../../engine/open-engine.js'),
    import('../../store/migrate.js'),
    import('../../runtime/log.js'),
  ]);
  const db = await openDatabase(database, silentLog);
  try {
    const { from, to } = await migrate(db);
    printLine(
      from === to
        ? `The schema in ${nameOf(database)} is up to date: version ${to}`
        : `The schema in ${nameOf(database)} went from version ${from} to ${to}`,
    );
  } finally {
    await db.close();
  }
}

function nameOf(database: ServeConfig['database']): string {
  if (database.kind === 'postgres') return hidePassword(database.url);
  return database.dataDir ?? 'memory';
}
