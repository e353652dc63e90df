import { Option, type Command } from 'commander';
import { taskStates, type TaskState } from '../../domain/task-state.js';
import { taskPageToWire } from '../../protocol/tasks-wire.js';
import type { ListedTask, ListInclude, TaskPage } from '../../protocol/tasks-api.js';
import { defined } from '../../protocol/defined.js';
import { includeOption, limitOption } from '../options.js';
import { printJson, printLine, printNote, printTable } from '../output.js';
import { readableAge, readableState } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

interface TasksCommandOptions extends RemoteOptions {
  readonly status?: TaskState;
  readonly queue?: string;
  readonly type?: string;
  readonly user?: string;
  readonly workflow?: string;
  readonly tag?: string;
  readonly text?: string;
  readonly limit: number;
  readonly cursor?: string;
  readonly include?: readonly ListInclude[];
}

export function tasksCommand(program: Command): void {
  const command = program
    .command('tasks')
    .description('List tasks, newest first')
    .addOption(new Option('--status <state>', 'only in this state').choices(taskStates))
    .option('--queue <name>', 'only of this queue')
    .option('--type <type>', 'only of this task type')
    .option('--user <id>', 'only of this user')
    .option('--workflow <id>', 'only of this workflow')
    .option('--tag <tag>', 'only with this tag')
    .option('--text <text>', 'only with this text in their parameters')
    .addOption(limitOption(20))
    .option('--cursor <cursor>', 'where the last list ended')
    .addOption(includeOption());
  withRemoteOptions(command).action(runTasks);
}

async function runTasks(options: TasksCommandOptions): Promise<void> {
  const api = await remoteApi(options);
  const { status, queue, type: taskType, user: userId, workflow: workflowId, tag } = options;
  const { text, limit, cursor, include } = options;
  const page = await api.listTasks(
    defined({ status, queue, taskType, userId, workflowId, tag, text }),
    defined({ limit, cursor, include }),
  );
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
