import type { Command } from 'commander';
import type { ServeConfig } from '../../runtime/config.js';
import { checkDataFolder, checkNode, checkPort, checkServer } from '../doctor/check-machine.js';
import { failed, ok, type Check, type Health } from '../doctor/check.js';
import { CliError } from '../failure.js';
import { paint, printJson, printLine } from '../output.js';
import { loadServeConfig, withDatabaseOptions, withRedisOption } from '../serve-config.js';
import { urlOf } from '../server-url.js';

export function doctorCommand(program: Command): void {
  const command = program
    .command('doctor')
    .description('Look for what keeps Sluice from running here, and say what to do')
    .option('--url <url>', 'where the server should answer')
    .option('--host <host>', 'where it should listen')
    .option('--port <port>', 'where it should listen')
    .option('--json', 'for programs');
  withRedisOption(withDatabaseOptions(command)).action(async () => runDoctor(command));
}

async function runDoctor(command: Command): Promise<void> {
  const { url, json } = command.opts<{ url?: string; json?: boolean }>();
  const checks = await runChecks(command, url);
  if (json === true) printJson(checks);
  else printChecks(checks);
  const failures = checks.filter(({ health }) => health === 'failed').length;
  if (failures > 0) throw new CliError(`${failures} of ${checks.length} checks failed.`);
}

async function runChecks(command: Command, url: string | undefined): Promise<readonly Check[]> {
  const node = checkNode();
  let config: ServeConfig;
  try {
    config = await loadServeConfig(command);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return [node, failed('settings', error.message, 'Mend them and try again.')];
  }
  const { host, port, database, redisUrl } = config;
  const server = await checkServer(url ?? process.env.SLUICE_URL ?? urlOf(host, port));
  return [
    node,
    ok('settings', 'valid'),
    server,
    await checkPort(host, port, server),
    ...(await checkDatabase(database)),
    ...(redisUrl === null ? [] : await checkRedisAt(redisUrl)),
  ];
}

async function checkDatabase(database: ServeConfig['database']): Promise<readonly Check[]> {
  if (database.kind === 'pglite') {
    return database.dataDir === undefined
      ? [ok('database', 'in memory: nothing outlives the server')]
      : [await checkDataFolder(database.dataDir)];
  }
  const { checkPostgres } = await import('../doctor/check-postgres.js');
  return checkPostgres(database.url);
}

async function checkRedisAt(url: string): Promise<readonly Check[]> {
  const { checkRedis } = await import('../doctor/check-redis.js');
  return checkRedis(url);
}

const marks: Readonly<Record<Health, string>> = {
  ok: paint('green', '✓'),
  warning: paint('yellow', '!'),
  failed: paint('red', '✗'),
};

function printChecks(checks: readonly Check[]): void {
  const width = Math.max(...checks.map(({ what }) => what.length));
  for (const { what, health, found, advice } of checks) {
    printLine(`${marks[health]} ${what.padEnd(width)}  ${found}`);
    if (advice !== null) printLine(`  ${' '.repeat(width)}  ${paint('bold', advice)}`);
  }
}
