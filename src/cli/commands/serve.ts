import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import type { RunningServer } from '../../server/serve.js';
import { describeServeConfig, serveSettings } from '../../runtime/config.js';
import { withAlertOptions } from '../alert-options.js';
import { CliError } from '../failure.js';
import { paint, printFields, printLine, printNote } from '../output.js';
import { loadServeConfig, withDatabaseOptions, withRedisOption } from '../serve-config.js';
import { openProvisioner } from '../open-provisioner.js';
import { withScaleOptions } from '../scale-options.js';
import { withTaskOptions } from '../task-options.js';
import { untilShutdown } from '../shutdown.js';

const lookEveryMs = 500;
const atOnce = 'A second signal ends it at once.';

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
    .option('--audit-days <days>', `${serveSettings.auditDays.meaning} (365)`)
    .option('--max-schedule-days <days>', `${serveSettings.maxScheduleDays.meaning} (366)`)
    .option('--no-wait', 'refuse to start when another process serves this database')
    .option('--heartbeat-seconds <seconds>', `${serveSettings.heartbeatIntervalMs.meaning} (10)`)
    .option('--lease-seconds <seconds>', `${serveSettings.leaseMs.meaning} (30)`)
    .option('--max-active <tasks>', `${serveSettings.maxActive.meaning} (10,000,000)`)
    .option('--max-active-medium <share>', `${serveSettings.maxActiveMedium.meaning} (90%)`)
    .option('--max-active-low <share>', `${serveSettings.maxActiveLow.meaning} (80%)`)
    .option('--submit-limit-per-key <limits>', serveSettings.submitLimitPerKey.meaning)
    .option('--submit-limit-per-user <limits>', serveSettings.submitLimitPerUser.meaning)
    .option('--environment <name>', serveSettings.environment.meaning)
    .option('--cors-origins <origins>', serveSettings.corsOrigins.meaning)
    .option('--open-metrics', 'answer /metrics without a key')
    .option('--trust-proxy <networks>', serveSettings.trustProxy.meaning)
    .option('--max-connections <n>', `${serveSettings.maxConnections.meaning} (10,000)`)
    .option('--drain-seconds <seconds>', `${serveSettings.drainMs.meaning} (5)`)
    .option('--log-level <level>', `${serveSettings.logLevel.meaning} (info)`)
    .option('--log-format <format>', serveSettings.logFormat.meaning)
    .option('--log-transitions <mode>', `${serveSettings.logTransitions.meaning} (problems)`)
    .option('--log-payloads', serveSettings.logPayloads.meaning);
  withAlertOptions(
    withScaleOptions(withTaskOptions(withRedisOption(withDatabaseOptions(command)))),
  ).action(async () => runServe(command));
}

async function runServe(command: Command): Promise<void> {
  const config = await loadServeConfig(command);
  const [{ serve }, { createLog, logDestination }] = await Promise.all([
    import('../../server/serve.js'),
    import('../../runtime/log.js'),
  ]);
  const provisioner = await openProvisioner(config.scaling);
  const { host, port, database, redisUrl, logLevel } = config;
  const { heartbeatIntervalMs, leaseMs, wakeOrder, retainEndedDays, retainDeadLettersDays } =
    config;
  const { auditDays, maxScheduleDays, maxActive, maxActiveMedium, maxActiveLow } = config;
  const { submitLimitPerKey, submitLimitPerUser } = config;
  const { corsOrigins, openMetrics, trustProxy } = config;
  const server = await serve({
    doors: { corsOrigins, openMetrics, trustProxy },
    ...(config.environment === null ? {} : { environment: config.environment }),
    host,
    port,
    database,
    ...(redisUrl === null ? {} : { redisUrl }),
    settings: {
      heartbeatIntervalMs,
      leaseMs,
      wakeOrder,
      retainEndedDays,
      retainDeadLettersDays,
      auditDays,
      maxScheduleDays,
      maxActive,
      maxActiveMedium,
      maxActiveLow,
      submitLimitPerKey,
      submitLimitPerUser,
      tasks: config.tasks,
      ...(config.assignmentTimeoutMs === null ? {} : { unstartedMs: config.assignmentTimeoutMs }),
    },
    scaling: config.scaling.settings,
    alertIntervalMs: config.alerts.intervalMs,
    ...(config.alerts.webhook === null ? {} : { alertWebhook: config.alerts.webhook }),
    ...(provisioner === undefined ? {} : { provisioner }),
    maxConnections: config.maxConnections,
    log: createLog(logLevel, logDestination(config.logFormat)),
    logTransitions: config.logTransitions,
    ...(config.logPayloads ? { logPayloads: {} } : {}),
  }).catch((error: unknown) => {
    throw explain(error, port);
  });
  // Before it says that it is ready: whoever reads that may want it to stop at once.
  const stopped = untilShutdown((signal) => {
    // Ctrl-C is of a person, who waits; SIGTERM of a service manager, with load balancers in front.
    const drainMs = signal === 'SIGTERM' ? config.drainMs : 0;
    if (drainMs > 0) printNote(`Stopping: answers for ${drainMs / 1000} s more. ${atOnce}`);
    return server.close({ drainMs });
  });
  const ready = `Sluice is ready at ${paint('bold', server.url)}`;
  const notReady = await whyNotReady(server);
  printLine(notReady ?? ready);
  printFields([
    ['dashboard', `${server.url}/`],
    ...Object.entries(describeServeConfig(config)),
    ['callers', callers(server)],
  ]);
  const ending = new AbortController();
  const announced = notReady === null ? null : announceReady(server, ready, ending.signal);
  await stopped;
  ending.abort();
  await announced;
}

function callers({ engine }: RunningServer): string {
  return engine.keys.areNeeded()
    ? 'whoever has an API key'
    : 'anybody on this machine; "sluice keys create" makes API keys';
}

/** Null: /readyz answers 200. */
async function whyNotReady(server: RunningServer): Promise<string | null> {
  const readiness = await server.readiness();
  if (readiness.ready) return null;
  // /readyz is for strangers and names no host; who started the server reads the whole reason.
  const reason = server.engine.readyQueueTrouble() ?? readiness.reason;
  return `Sluice is not ready at ${server.url}: ${reason}`;
}

/** Prints the line once, when what was missing is there. */
async function announceReady(
  server: RunningServer,
  ready: string,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    if ((await server.readiness()).ready) {
      printLine(ready);
      return;
    }
    await delay(lookEveryMs, undefined, { signal }).catch(() => undefined);
  }
}

function explain(error: unknown, port: number): unknown {
  const { code, name, message } = error as NodeJS.ErrnoException;
  if (name === 'MixedServersError') {
    return new CliError(message, {
      next: 'Give every server of this database the same REDIS_URL, or give it to none.',
      cause: error,
    });
  }
  if (name === 'NoKeysError') {
    return new CliError(message, {
      next: 'Make one first: sluice keys create --name admin --scopes admin',
      exitCode: 2,
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
