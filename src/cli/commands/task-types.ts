import type { Command } from 'commander';
import type { ListedTaskType, TaskTypeView } from '../../protocol/task-types-api.js';
import { taskTypePageToWire, taskTypeToWire } from '../../protocol/task-types-wire.js';
import { printFields, printJson, printLine, printTable } from '../output.js';
import { everyPage } from '../pages.js';
import { tokensText } from '../queue-text.js';
import { readableAge, readableSeconds } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

export function taskTypesCommand(program: Command): void {
  const command = program
    .command('task-types [type]')
    .description('Show what submits of each task type get that leave it out');
  withRemoteOptions(command).action(runTaskTypes);
}

async function runTaskTypes(name: string | undefined, options: RemoteOptions): Promise<void> {
  const api = await remoteApi(options);
  if (name !== undefined) {
    const type = await api.getTaskType(name);
    if (options.json === true) printJson(taskTypeToWire(type));
    else printTaskType(type);
    return;
  }
  const items = await everyPage((page) => api.listTaskTypes(page));
  if (options.json === true) printJson(taskTypePageToWire({ items, nextCursor: null }));
  else if (items.length === 0) printLine('No task types yet: workers define them when they start.');
  else printTaskTypes(items);
}

function printTaskTypes(types: readonly ListedTaskType[]): void {
  printTable(
    [
      { title: 'type', least: 16 },
      { title: 'queue', least: 12 },
      { title: 'priority', spare: 2 },
      { title: 'retries', align: 'right', spare: 3 },
      { title: 'timeout', align: 'right', spare: 4 },
      { title: 'cost', least: 12, spare: 5 },
      { title: 'version', least: 8, spare: 1 },
    ],
    types.map((type) => [
      type.taskType,
      type.queue ?? '',
      type.priority ?? '',
      type.maxRetries === null ? '' : String(type.maxRetries),
      type.timeoutSeconds === null ? '' : readableSeconds(type.timeoutSeconds),
      tokensText(type.cost ?? {}),
      type.version ?? '',
    ]),
  );
}

function printTaskType(type: TaskTypeView): void {
  const now = new Date();
  const { timeoutSeconds, maxRetries, retry, inputSchema } = type;
  printFields([
    ['type', type.taskType],
    ['queue', type.queue ?? 'default'],
    ['priority', type.priority ?? 'medium'],
    ['retries', maxRetries === null ? 'by priority' : String(maxRetries)],
    ['timeout', timeoutSeconds === null ? 'by priority' : readableSeconds(timeoutSeconds)],
    ['cost', tokensText(type.cost ?? {})],
    ['capabilities', type.capabilities.join(', ')],
    ['retry policy', retry === null ? '' : JSON.stringify(retry)],
    ['version', type.version ?? ''],
    ['defined', readableAge(type.definedAt, now)],
    ['last seen', readableAge(type.seenAt, now)],
    ['input', inputSchema === null ? '' : JSON.stringify(inputSchema)],
  ]);
}
