import type { Command } from 'commander';
import type { TaskId } from '../../domain/ids.js';
import { cancellationToWire } from '../../protocol/tasks-wire.js';
import { taskId as asTaskId } from '../options.js';
import { printJson, printLine } from '../output.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

export function cancelCommand(program: Command): void {
  const command = program
    .command('cancel')
    .argument('<id>', 'the task', asTaskId)
    .description('Cancel a task that has not ended; a handler that runs is told to stop');
  withRemoteOptions(command).action(runCancel);
}

async function runCancel(id: TaskId, options: RemoteOptions): Promise<void> {
  const api = await remoteApi(options);
  const cancellation = await api.cancelTask(id);
  const { taskId, wasExecuting, workerNotified } = cancellation;
  if (options.json === true) {
    printJson(cancellationToWire(cancellation));
    return;
  }
  const running = workerNotified
    ? '; it was running, and its worker was told'
    : '; it was running, and its worker will be told at its next heartbeat';
  printLine(`${taskId} is cancelled${wasExecuting ? running : ''}`);
}
