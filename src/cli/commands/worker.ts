import { Option, type Command } from 'commander';
import { workerConflicts } from '../../domain/setting-conflicts.js';
import { bounds } from '../../protocol/bounds.js';
import { CliError } from '../failure.js';
import {
  decimal,
  logFormatOption,
  logLevelOption,
  logTransitionsOption,
  names,
  orVariable,
  wholeNumber,
} from '../options.js';
import { withServerOptions } from '../remote.js';
import type { WorkerCommandOptions } from '../worker/options.js';

const seconds = (min: number) => wholeNumber(min, 2_000_000);

export function workerCommand(program: Command): void {
  const command = program
    .command('worker')
    .description('Run the tasks that a module defines')
    .requiredOption(
      '--module <file>',
      'exports what defineTask() answers; TypeScript or JavaScript',
    );
  withServerOptions(command)
    .addOption(concurrencyOption())
    .addOption(claimBatchOption())
    .addOption(latencyThresholdOption())
    .option(
      '--processes <n>',
      'so many processes under one parent, named NAME-1 and so on; one that crashes is started again',
      wholeNumber(1, 1_000),
    )
    .option('--queues <names>', 'only of these queues, separated by commas', names)
    .option('--capabilities <names>', 'what it has, for example gpu', names)
    .option('--name <name>', 'what people see in the list of workers')
    .option(
      '--code-version <version>',
      'of the module: where workers define a task type differently, the newer one counts',
    )
    .option(
      '--drain-timeout <seconds>',
      'what runs may finish after SIGTERM; the rest goes back to its queues',
      seconds(0),
      30,
    )
    .option(
      '--max-idle <seconds>',
      'leave after so long without a task; each process by itself, and the parent with the last',
      seconds(1),
    )
    .option(
      '--max-lifetime <seconds>',
      'drain and leave at this age; with --processes another takes its place',
      seconds(1),
    )
    .option(
      '--memory-limit <megabytes>',
      "of all processes together, to claim less when it gets scarce (the container's or machine's)",
      wholeNumber(1, 100_000_000),
    )
    .option(
      '--metrics-port <port>',
      'answer /metrics for Prometheus, of all processes together; 0 takes any free port',
      wholeNumber(0, 65_535),
    )
    .option('--metrics-host <host>', 'where to listen for it', '127.0.0.1')
    .addOption(
      new Option(
        '--otel [structure]',
        'OpenTelemetry: spans of what it runs, linked to those of submits, or children',
      )
        .choices(['link', 'parent'])
        .preset('link')
        .env('SLUICE_OTEL'),
    )
    .addOption(logLevelOption())
    .addOption(logFormatOption())
    .addOption(logTransitionsOption())
    .addOption(new Option('--child <n>').argParser(wholeNumber(1, 1_000)).hideHelp())
    .action(runWorker);
}

function concurrencyOption(): Option {
  const option = new Option('--concurrency <n>', 'tasks at once, in each process (1000)');
  return orVariable(option, 'SLUICE_CONCURRENCY').argParser(wholeNumber(1, bounds.capacity));
}

function claimBatchOption(): Option {
  const option = new Option('--claim-batch <n>', 'tasks that one claim asks for at most (50)');
  return orVariable(option, 'SLUICE_CLAIM_BATCH').argParser(wholeNumber(1, bounds.pollTasks));
}

function latencyThresholdOption(): Option {
  const option = new Option(
    '--latency-threshold <seconds>',
    'claim less while the 99th percentile of the durations of tasks is above this (never)',
  );
  return orVariable(option, 'SLUICE_LATENCY_THRESHOLD').argParser(decimal(0.001, 1_000_000));
}

async function runWorker(options: WorkerCommandOptions): Promise<void> {
  const { child, processes } = options;
  refuseContradictions(options);
  if (child !== undefined) {
    const { runChild } = await import('../worker/run-child.js');
    await runChild(options);
  } else if (processes !== undefined) {
    const { runProcesses } = await import('../worker/run-processes.js');
    await runProcesses(options, processes);
  } else {
    const { runAlone } = await import('../worker/run-alone.js');
    await runAlone(options);
  }
}

/** Here and not only in the worker: with several processes each of them would say it. */
function refuseContradictions({ maxIdle, maxLifetime }: WorkerCommandOptions): void {
  const conflicts = workerConflicts({
    maxIdleMs: maxIdle === undefined ? undefined : maxIdle * 1000,
    maxLifetimeMs: maxLifetime === undefined ? undefined : maxLifetime * 1000,
  });
  if (conflicts.length > 0) throw new CliError(conflicts.join('\n'), { exitCode: 2 });
}
