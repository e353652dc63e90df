import type { Command } from 'commander';
import { taskPageToWire } from '../../protocol/tasks-wire.js';
import type { ListedTask, ListInclude, TaskPage } from '../../protocol/tasks-api.js';
import { defined } from '../../protocol/defined.js';
import { includeOption, limitOption } from '../options.js';
import { printJson, printLine, printNote, printTable } from '../output.js';
import { readableAge, readableState } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';
import { taskFilterOf, withTaskFilter, type TaskFilterOptions } from '../task-filter.js';
import {
  cancelTasksCommand,
  replayTasksCommand,
  reprioritiseTasksCommand,
} from './tasks-in-bulk.js';

interface ListOptions extends TaskFilterOptions, RemoteOptions {
  readonly limit: number;
  readonly cursor?: string;
  readonly include?: readonly ListInclude[];
}

export function tasksCommand(program: Command): void {
  const tasks = program
    .command('tasks')
    .description('List tasks, or change all that match a filter');
  const list = tasks
    .command('list', { isDefault: true })
    .description('List them, newest first')
    .addOption(limitOption(20))
    .option('--cursor <cursor>', 'where the last list ended')
    .addOption(includeOption());
  withRemoteOptions(withTaskFilter(list)).action(runList);
  cancelTasksCommand(tasks);
  replayTasksCommand(tasks);
  reprioritiseTasksCommand(tasks);
}

async function runList(options: ListOptions): Promise<void> {
  const api = await remoteApi(options);
  const { limit, cursor, include } = options;
  const page = await api.listTasks(taskFilterOf(options), defined({ limit, cursor, include }));
  if (options.json === true) {
    printJson(taskPageToWire(page));
    return;
  }
  if (page.items.length > 0) printTasks(page.items);
  else printLine(page.nextCursor === null ? 'No tasks.' : 'No match so far.');
  if (page.nextCursor !== null) printNote(furtherText(page));
}

function furtherText({ searchedBackTo, nextCursor }: TaskPage): string {
  const backTo = searchedBackTo === null ? '' : `Looked back to ${searchedBackTo.toISOString()}. `;
  return `${backTo}There may be more: --cursor ${nextCursor ?? ''}`;
}

function printTasks(tasks: readonly ListedTask[]): void {
  const now = new Date();
  printTable(
    [
      { title: 'task' },
      { title: 'type', least: 8 },
      { title: 'queue', least: 8 },
      { title: 'priority', spare: 2 },
      { title: 'state' },
      { title: 'attempt', align: 'right', spare: 1 },
      { title: 'submitted', spare: 3 },
      { title: 'error', least: 8, spare: 4 },
    ],
    tasks.map((task) => [
      task.taskId,
      task.taskType,
      task.queue,
      task.priority,
      readableState(task.status),
      String(task.attempt),
      readableAge(task.createdAt, now),
      task.error?.code ?? '',
    ]),
  );
}
