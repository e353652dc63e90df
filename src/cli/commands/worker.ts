import type { Command } from 'commander';
import type { Worker } from '../../worker/worker.js';
import { loadTaskDefinitions } from '../load-module.js';
import { names, wholeNumber } from '../options.js';
import { printLine, printNote } from '../output.js';
import { remoteApi, urlOption } from '../remote.js';
import { untilShutdown } from '../shutdown.js';

interface WorkerCommandOptions {
  readonly url: string;
  readonly module: string;
  readonly concurrency?: number;
  readonly queues?: readonly string[];
  readonly capabilities?: readonly string[];
  readonly name?: string;
}

const patienceMs = 2_000;

export function workerCommand(program: Command): void {
  program
    .command('worker')
    .description('Run the tasks that a module defines')
    .requiredOption('--module <file>', 'exports what defineTask() answers')
    .addOption(urlOption())
    .option('--concurrency <n>', 'tasks at once (1000)', wholeNumber(1, 100_000))
    .option('--queues <names>', 'only of these queues, separated by commas', names)
    .option('--capabilities <names>', 'what it has, for example gpu', names)
    .option('--name <name>', 'what people see in the list of workers')
    .action(runWorker);
}

async function runWorker({ url, module, ...options }: WorkerCommandOptions): Promise<void> {
  const definitions = await loadTaskDefinitions(module);
  const [{ Worker }, { createLog }, api] = await Promise.all([
    import('../../worker/worker.js'),
    import('../../runtime/log.js'),
    remoteApi({ url }),
  ]);
  const log = createLog(process.env.SLUICE_LOG_LEVEL ?? 'warn');
  const worker = new Worker(api, definitions, { ...options, log });
  const shutdown = untilShutdown(() => worker.stop(), worker.stopped);
  await Promise.race([startPatiently(worker, url), shutdown]);
  if (worker.id !== null) {
    const types = definitions.map(({ type }) => type).join(', ');
    printLine(`Worker ${worker.id} is ready for ${types} at ${url}`);
  }
  await shutdown;
}

async function startPatiently(worker: Worker, url: string): Promise<void> {
  const note = setTimeout(() => {
    printNote(`Waiting for a server at ${url}; "sluice serve" starts one.`);
  }, patienceMs);
  try {
    await worker.start();
  } finally {
    clearTimeout(note);
  }
}
