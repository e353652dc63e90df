import type { Command } from 'commander';
import type { Priority } from '../../domain/priority.js';
import { taskIdFromWire } from '../../protocol/common-wire.js';
import {
  deadLetterAnalysisToWire,
  deadLetterPageToWire,
} from '../../protocol/dead-letters-wire.js';
import { taskToWire } from '../../protocol/tasks-wire.js';
import type { DeadLetterFilter, DeadLetterPattern } from '../../protocol/api.js';
import { defined } from '../../protocol/defined.js';
import { CliError } from '../failure.js';
import { limitOption, priorityOption } from '../options.js';
import { printJson, printLine, printNote, printTable } from '../output.js';
import { readableAge, readableState } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';
import { printTasks } from './tasks.js';

interface FilterOptions extends RemoteOptions {
  readonly queue?: string;
  readonly type?: string;
  readonly code?: string;
}

interface ListOptions extends FilterOptions {
  readonly limit: number;
  readonly cursor?: string;
}

interface ReplayOptions extends FilterOptions {
  readonly priority?: Priority;
  readonly all?: boolean;
}

export function dlqCommand(program: Command): void {
  const dlq = program.command('dlq').description('Dead letters: tasks that will not run again');
  withFilter(dlq.command('list', { isDefault: true }).description('List them, newest first'))
    .addOption(limitOption(20))
    .option('--cursor <cursor>', 'where the last list ended')
    .action(runList);
  withRemoteOptions(
    dlq.command('analysis').description('Group them by queue, type and error'),
  ).action(runAnalysis);
  withFilter(dlq.command('replay [id]').description('Run one again, or all that the filter meets'))
    .addOption(priorityOption('--priority <priority>', 'a new priority'))
    .option('--all', 'every dead letter there is')
    .action(runReplay);
}

function withFilter(command: Command): Command {
  return withRemoteOptions(command)
    .option('--queue <name>', 'only of this queue')
    .option('--type <type>', 'only of this task type')
    .option('--code <code>', 'only with this error');
}

async function runList(options: ListOptions): Promise<void> {
  const api = await remoteApi(options);
  const { limit, cursor } = options;
  const page = await api.listDeadLetters(filterOf(options), defined({ limit, cursor }));
  if (options.json === true) {
    printJson(deadLetterPageToWire(page));
    return;
  }
  if (page.items.length === 0) printLine('No dead letters.');
  else printTasks(page.items);
  if (page.nextCursor !== null) {
    printNote(`${page.totalCount} in all; there are more: --cursor ${page.nextCursor}`);
  }
}

async function runAnalysis(options: RemoteOptions): Promise<void> {
  const api = await remoteApi(options);
  const patterns = await api.analyseDeadLetters();
  if (options.json === true) printJson(deadLetterAnalysisToWire(patterns));
  else if (patterns.length === 0) printLine('No dead letters.');
  else printPatterns(patterns);
}

async function runReplay(id: string | undefined, options: ReplayOptions): Promise<void> {
  const api = await remoteApi(options);
  const request = options.priority === undefined ? {} : { newPriority: options.priority };
  if (id !== undefined) {
    const task = await api.replayTask(taskIdFromWire(id), request);
    if (options.json === true) printJson(taskToWire(task));
    else printLine(`${task.taskId} is ${readableState(task.status)} again`);
    return;
  }
  const filter = filterOf(options);
  if (Object.keys(filter).length === 0 && options.all !== true) {
    throw new CliError('Which ones? Name a task, --queue, --type or --code; or say --all.', {
      exitCode: 2,
    });
  }
  const answer = await api.replayDeadLetters(filter, request);
  if (options.json === true) printJson(answer);
  else printLine(`${answer.replayed} replayed`);
}

function filterOf({ queue, type: taskType, code }: FilterOptions): DeadLetterFilter {
  return defined({ queue, taskType, code });
}

function printPatterns(patterns: readonly DeadLetterPattern[]): void {
  const now = new Date();
  printTable(
    [
      { title: 'count', align: 'right' },
      { title: 'queue' },
      { title: 'type' },
      { title: 'error' },
      { title: 'retriable' },
      { title: 'last seen' },
      { title: 'example' },
    ],
    patterns.map(({ count, queue, taskType, code, retriable, lastSeen, example }) => [
      String(count),
      queue,
      taskType,
      code,
      retriable ? 'yes' : 'no',
      readableAge(lastSeen, now),
      `${example.taskId} ${example.message}`,
    ]),
  );
}
