import type { Command } from 'commander';
import type { Engine } from '../../engine/open-engine.js';
import { describeServeConfig, serveSettings } from '../../runtime/config.js';
import { CliError } from '../failure.js';
import { paint, printFields, printLine } from '../output.js';
import { loadServeConfig, withDatabaseOptions, withRedisOption } from '../serve-config.js';
import { openProvisioner } from '../open-provisioner.js';
import { withScaleOptions } from '../scale-options.js';
import { untilShutdown } from '../shutdown.js';

const lookEveryMs = 500;

export function serveCommand(program: Command): void {
  const command = program
    .command('serve')
    .description('Run a server: embedded Postgres by default, or on a Postgres of yours')
    .option('--host <host>', `${serveSettings.host.meaning} (127.0.0.1)`)
    .option('--port <port>', `where to listen; ${serveSettings.port.meaning} (7700)`)
    .option('--retain-ended-days <days>', `${serveSettings.retainEndedDays.meaning} (7)`)
    .option(
      '--retain-dead-letters-days <days>',
      `${serveSettings.retainDeadLettersDays.meaning} (30)`,
    )
    .option('--no-wait', 'refuse to start when another process serves this database')
    .option('--heartbeat-seconds <seconds>', `${serveSettings.heartbeatIntervalMs.meaning} (10)`)
    .option('--lease-seconds <seconds>', `${serveSettings.leaseMs.meaning} (30)`)
    .option('--submit-limit-per-key <limits>', serveSettings.submitLimitPerKey.meaning)
    .option('--submit-limit-per-user <limits>', serveSettings.submitLimitPerUser.meaning)
    .option('--log-level <level>', serveSettings.logLevel.meaning);
  withScaleOptions(withRedisOption(withDatabaseOptions(command))).action(async () =>
    runServe(command),
  );
}

async function runServe(command: Command): Promise<void> {
  const config = await loadServeConfig(command);
  const [{ serve }, { createLog }] = await Promise.all([
    import('../../server/serve.js'),
    import('../../runtime/log.js'),
  ]);
  const provisioner = await openProvisioner(config.scaling);
  const standbys: string[] = [];
  const { host, port, database, redisUrl, waitForTurn, logLevel } = config;
  const { heartbeatIntervalMs, leaseMs, wakeOrder, retainEndedDays, retainDeadLettersDays } =
    config;
  const { submitLimitPerKey, submitLimitPerUser } = config;
  const server = await serve({
    host,
    port,
    database,
    ...(redisUrl === null ? {} : { redisUrl }),
    waitForTurn,
    settings: {
      heartbeatIntervalMs,
      leaseMs,
      wakeOrder,
      retainEndedDays,
      retainDeadLettersDays,
      submitLimitPerKey,
      submitLimitPerUser,
    },
    scaling: config.scaling.settings,
    ...(provisioner === undefined ? {} : { provisioner }),
    log: createLog(logLevel),
    onStandby: (message) => standbys.push(message),
  }).catch((error: unknown) => {
    throw explain(error, port);
  });
  // Before it says that it is ready: whoever reads that may want it to stop at once.
  const stopped = untilShutdown(() => server.close());
  const ready = `Sluice is ready at ${paint('bold', server.url)}`;
  const [standby] = standbys;
  printLine(standby === undefined ? ready : `Sluice stands by at ${server.url}: ${standby}`);
  printFields(Object.entries(describeServeConfig(config)));
  const watch = standby === undefined ? undefined : announceTurn(server.engine, ready);
  await stopped;
  clearInterval(watch);
}

/** Whoever reads along learns when a standby takes over. */
function announceTurn(engine: Engine, ready: string): NodeJS.Timeout {
  const watch = setInterval(() => {
    if (engine.notServing() !== null) return;
    clearInterval(watch);
    printLine(ready);
  }, lookEveryMs);
  return watch;
}

function explain(error: unknown, port: number): unknown {
  const { code, name, message } = error as NodeJS.ErrnoException;
  if (name === 'NotOurTurnError' && message.includes('REDIS_URL')) {
    return new CliError(message, {
      next: 'Give every server of this database the same REDIS_URL, or give it to none.',
      cause: error,
    });
  }
  if (code === 'EADDRINUSE') {
    return new CliError(`Port ${port} is taken by another process.`, {
      next: 'Is a server running already? "sluice doctor" looks. Or choose another with --port.',
      cause: error,
    });
  }
  return error;
}
