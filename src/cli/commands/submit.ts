import type { Command } from 'commander';
import type { JsonObject } from '../../domain/json.js';
import type { Priority } from '../../domain/priority.js';
import { receiptToWire, taskToWire } from '../../protocol/tasks-wire.js';
import type { Receipt } from '../../protocol/tasks-api.js';
import { defined } from '../../protocol/defined.js';
import { CliError } from '../failure.js';
import { jsonObject, priorityOption } from '../options.js';
import { printJson, printLine, printNote } from '../output.js';
import { readableSeconds } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

interface SubmitCommandOptions extends RemoteOptions {
  readonly queue?: string;
  readonly priority?: Priority;
  readonly params?: JsonObject;
  readonly idempotencyKey?: string;
  readonly wait?: boolean;
}

export function submitCommand(program: Command): void {
  const command = program
    .command('submit <type>')
    .description('Submit one task')
    .option('--queue <name>', "which limits it shares (its type's, else default)")
    .addOption(priorityOption('--priority <priority>', "how urgent (its type's, else medium)"))
    .option('--params <json>', 'its parameters, a JSON object', jsonObject)
    .option('--idempotency-key <key>', 'the same key again answers with the same task')
    .option('--wait', 'until it has ended, and print its result');
  withRemoteOptions(command).action(runSubmit);
}

async function runSubmit(taskType: string, options: SubmitCommandOptions): Promise<void> {
  const api = await remoteApi(options);
  const { queue, priority, params: parameters, idempotencyKey } = options;
  const receipt = await api.submit({
    taskType,
    ...defined({ queue, priority, parameters, idempotencyKey }),
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
