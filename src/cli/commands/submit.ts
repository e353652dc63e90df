import { InvalidArgumentError, type Command } from 'commander';
import type { Cost } from '../../domain/queue-settings.js';
import type { Priority } from '../../domain/priority.js';
import { receiptToWire, taskToWire } from '../../protocol/tasks-wire.js';
import type { Receipt } from '../../protocol/tasks-api.js';
import { defined } from '../../protocol/defined.js';
import { CliError } from '../failure.js';
import { duration, names, priorityOption, wholeNumber } from '../options.js';
import { printJson, printLine, printNote } from '../output.js';
import { readParameters } from '../parameters.js';
import { readableSeconds } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

interface SubmitCommandOptions extends RemoteOptions {
  readonly queue?: string;
  readonly priority?: Priority;
  readonly params?: string;
  /** In milliseconds. */
  readonly delay?: number;
  readonly cost?: Cost;
  readonly workflow?: string;
  readonly retries?: number;
  readonly idempotencyKey?: string;
  readonly wait?: boolean;
}

export function submitCommand(program: Command): void {
  const command = program
    .command('submit <type>')
    .description('Submit one task')
    .option('--queue <name>', "which limits it shares (its type's, else default)")
    .addOption(priorityOption('--priority <priority>', "how urgent (its type's, else medium)"))
    .option('--params <json>', 'its parameters: a JSON object, @FILE with one, or - for stdin')
    .option('--delay <duration>', 'not before 30s, 10m, 2h or 1d have passed', duration)
    .option(
      '--cost <unit=n>',
      'what it takes of limits, like tokens=1200; may be repeated',
      addCost,
    )
    .option('--workflow <id>', 'tasks with the same id run one at a time, in order')
    .option('--retries <n>', 'how often it is tried again', wholeNumber(0, 100))
    .option('--idempotency-key <key>', 'the same key again answers with the same task')
    .option('--wait', 'until it has ended, and print its result');
  withRemoteOptions(command).action(runSubmit);
}

async function runSubmit(taskType: string, options: SubmitCommandOptions): Promise<void> {
  const { queue, priority, params, delay, cost, idempotencyKey } = options;
  const { workflow: workflowId, retries: maxRetries } = options;
  const parameters = params === undefined ? undefined : await readParameters(params);
  const delaySeconds = delay === undefined ? undefined : delay / 1000;
  const api = await remoteApi(options);
  const receipt = await api.submit({
    taskType,
    ...defined({ queue, priority, parameters, delaySeconds, cost, workflowId, maxRetries }),
    ...defined({ idempotencyKey }),
  });
  if (options.wait !== true) {
    if (options.json === true) printJson(receiptToWire(receipt));
    else printLine(describe(receipt));
    return;
  }
  if (options.json !== true) printNote(describe(receipt));
  const { TaskHandle } = await import('../../client/task-handle.js');
  const task = await new TaskHandle(receipt.taskId, api).ended();
  if (options.json === true) printJson(taskToWire(task));
  else if (task.status === 'completed') printJson(task.result);
  if (task.status === 'completed') return;
  const why = task.error === null ? '' : `: ${task.error.code}: ${task.error.message}`;
  throw new CliError(`The task ended as ${task.status}${why}`, {
    next: `"sluice task ${task.taskId}" shows every attempt.`,
  });
}

function describe(receipt: Receipt): string {
  const { taskId, queue, queuePosition, estimatedWaitSeconds, created } = receipt;
  const place = queuePosition === null ? '' : `, ${queuePosition} before it`;
  const wait =
    estimatedWaitSeconds === null ? '' : `, about ${readableSeconds(estimatedWaitSeconds)}`;
  return created
    ? `Submitted ${taskId} to ${queue}${place}${wait}`
    : `Already submitted: ${taskId} in ${queue}, ${receipt.status}`;
}

function addCost(text: string, before: Cost = {}): Cost {
  const added = names(text).map((part) => {
    const [, unit, count] = /^([\w.:/-]+)=(\d{1,12})$/.exec(part) ?? [];
    if (unit !== undefined && count !== undefined) return [unit, Number(count)] as const;
    throw new InvalidArgumentError('It must be a unit and a whole number, like tokens=1200.');
  });
  return { ...before, ...Object.fromEntries(added) };
}
