import { InvalidArgumentError, Option, type Command } from 'commander';
import type { TaskId } from '../../domain/ids.js';
import type { Priority } from '../../domain/priority.js';
import {
  deadLetterAnalysisToWire,
  deadLetterPageToWire,
} from '../../protocol/dead-letters-wire.js';
import { taskToWire } from '../../protocol/tasks-wire.js';
import type { SluiceApi } from '../../protocol/api.js';
import type {
  DeadLetterFilter,
  DeadLetterPattern,
  DeadLetterReplay,
} from '../../protocol/dead-letters-api.js';
import { defined } from '../../protocol/defined.js';
import type { ListedTask, ListInclude } from '../../protocol/tasks-api.js';
import { CliError } from '../failure.js';
import { inBulk } from '../in-bulk.js';
import {
  includeOption,
  instant,
  limitOption,
  priorityOption,
  taskId as asTaskId,
  wholeNumber,
} from '../options.js';
import { printJson, printLine, printNote, printTable } from '../output.js';
import { bars, oneLine, readableAge, readableSeconds, readableState } from '../readable.js';
import { printReplayed } from '../replayed.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

interface FilterOptions extends RemoteOptions {
  readonly queue?: string;
  readonly type?: string;
  readonly code?: string;
  readonly pattern?: string;
  readonly since?: Date;
  readonly until?: Date;
}

interface ListOptions extends FilterOptions {
  readonly limit: number;
  readonly cursor?: string;
  readonly include?: readonly ListInclude[];
}

interface ReplayOptions extends FilterOptions {
  readonly priority?: Priority;
  readonly perSecond?: number;
  readonly all?: boolean;
  readonly dryRun?: boolean;
}

/** The server's own, for what a dry run says. */
const usualPerSecond = 100;

export function dlqCommand(program: Command): void {
  const dlq = program.command('dlq').description('Dead letters: tasks that will not run again');
  withFilter(dlq.command('list', { isDefault: true }).description('List them, newest first'))
    .addOption(limitOption(20))
    .option('--cursor <cursor>', 'where the last list ended')
    .addOption(includeOption())
    .action(runList);
  withRemoteOptions(
    dlq.command('analysis').description('Group them by type, error and message'),
  ).action(runAnalysis);
  withFilter(
    dlq
      .command('replay')
      .argument('[id]', 'the task', asTaskId)
      .description('Run one again, or all that the filter meets'),
  )
    .addOption(priorityOption('--priority <priority>', 'a new priority'))
    .addOption(
      new Option(
        '--per-second <n>',
        `how many become due in a second (${usualPerSecond})`,
      ).argParser(wholeNumber(1, 1_000_000)),
    )
    .option('--all', 'every dead letter there is')
    .option('--dry-run', 'only say how many there are, and how long it would take')
    .action(runReplay);
}

function withFilter(command: Command): Command {
  return withRemoteOptions(command)
    .option('--queue <name>', 'only of this queue')
    .option('--type <type>', 'only of this task type')
    .option('--code <code>', 'only with this error')
    .option('--pattern <id>', 'only of this pattern, as "sluice dlq analysis" names it', patternId)
    .option('--since <time>', 'only those that ended then or later, as 2026-01-31T12:00Z', instant)
    .option('--until <time>', 'only those that ended before', instant);
}

async function runList(options: ListOptions): Promise<void> {
  const api = await remoteApi(options);
  const { limit, cursor, include } = options;
  const page = await api.listDeadLetters(filterOf(options), defined({ limit, cursor, include }));
  if (options.json === true) {
    printJson(deadLetterPageToWire(page));
    return;
  }
  if (page.items.length === 0) printLine('No dead letters.');
  else printDeadLetters(page.items);
  if (page.nextCursor !== null) {
    printNote(`${inAll(page.totalCount)} in all; there are more: --cursor ${page.nextCursor}`);
  }
}

async function runAnalysis(options: RemoteOptions): Promise<void> {
  const api = await remoteApi(options);
  const patterns = await api.analyseDeadLetters();
  if (options.json === true) printJson(deadLetterAnalysisToWire(patterns));
  else if (patterns.length === 0) printLine('No dead letters.');
  else printPatterns(patterns);
}

async function runReplay(id: TaskId | undefined, options: ReplayOptions): Promise<void> {
  const api = await remoteApi(options);
  const request = options.priority === undefined ? {} : { newPriority: options.priority };
  if (id !== undefined) {
    const task = await api.replayTask(id, request);
    if (options.json === true) printJson(taskToWire(task));
    else printLine(`${task.taskId} is ${readableState(task.status)} again`);
    return;
  }
  const filter = filterOf(options);
  if (Object.keys(filter).length === 0 && options.all !== true) {
    throw new CliError(
      'Which ones? Name a task, --queue, --type, --code, --pattern, --since or --until; or say --all.',
      {
        exitCode: 2,
      },
    );
  }
  if (options.dryRun === true) await runDryRun(api, filter, options);
  else
    await runReplayMany(
      api,
      filter,
      { ...request, ...defined({ perSecond: options.perSecond }) },
      options,
    );
}

async function runDryRun(
  api: SluiceApi,
  filter: DeadLetterFilter,
  { perSecond = usualPerSecond, json }: ReplayOptions,
): Promise<void> {
  const { totalCount } = await api.listDeadLetters(filter, { limit: 1 });
  const seconds = Math.max(0, totalCount - 1) / perSecond;
  if (json === true) printJson({ would_replay: totalCount, seconds });
  else printLine(`${inAll(totalCount)} would be replayed, over ${readableSeconds(seconds)}`);
}

async function runReplayMany(
  api: SluiceApi,
  filter: DeadLetterFilter,
  request: DeadLetterReplay,
  options: ReplayOptions,
): Promise<void> {
  const answers = await inBulk({
    done: 'replayed',
    call: (cursor) => api.replayDeadLetters(filter, { ...request, ...defined({ cursor }) }),
    countOf: (answer) => answer.replayed,
    countLeft: async () => (await api.listDeadLetters(filter, { limit: 1 })).totalCount,
  });
  printReplayed(answers, options);
}

function filterOf(options: FilterOptions): DeadLetterFilter {
  const { queue, type: taskType, code, pattern, since, until } = options;
  return defined({ queue, taskType, code, pattern, since, until });
}

/** From there on the server counts no further. */
const mostCounted = 10_000;

function inAll(totalCount: number): string {
  return totalCount < mostCounted ? String(totalCount) : `${totalCount} or more`;
}

function printDeadLetters(tasks: readonly ListedTask[]): void {
  const now = new Date();
  printTable(
    [
      { title: 'task' },
      { title: 'type', least: 8 },
      { title: 'queue', least: 8 },
      { title: 'attempts', align: 'right', spare: 1 },
      { title: 'ended', spare: 3 },
      { title: 'error', least: 8 },
      { title: 'message', least: 20, spare: 2 },
    ],
    tasks.map((task) => [
      task.taskId,
      task.taskType,
      task.queue,
      String(task.attempt),
      task.completedAt === null ? '' : readableAge(task.completedAt, now),
      task.error?.code ?? '',
      oneLine(task.error?.message ?? ''),
    ]),
  );
}

function printPatterns(patterns: readonly DeadLetterPattern[]): void {
  const now = new Date();
  printTable(
    [
      { title: 'count', align: 'right' },
      { title: 'pattern' },
      { title: 'type', least: 8 },
      { title: 'error', least: 8 },
      { title: 'queue', least: 8, spare: 4 },
      { title: 'retriable', align: 'right', spare: 2 },
      { title: 'last 24 h', spare: 5 },
      { title: 'first seen', spare: 1 },
      { title: 'last seen', spare: 3 },
      { title: 'message', least: 10 },
    ],
    patterns.map((pattern) => [
      String(pattern.count),
      pattern.id,
      pattern.taskType,
      pattern.code,
      readableQueues(pattern),
      `${Math.round(pattern.retriableShare * 100)} %`,
      bars(pattern.hourly),
      readableAge(pattern.firstSeen, now),
      readableAge(pattern.lastSeen, now),
      oneLine(pattern.message ?? '(all other messages)'),
    ]),
  );
  printNote('Run the tasks of a pattern again with: sluice dlq replay --pattern <pattern>');
}

function readableQueues({ queues: [first], queueCount }: DeadLetterPattern): string {
  if (first === undefined) return '';
  return queueCount > 1 ? `${first.queue} and ${queueCount - 1} more` : first.queue;
}

function patternId(text: string): string {
  if (/^[0-9a-f]{16}$/.test(text)) return text;
  throw new InvalidArgumentError('It must be a pattern as "sluice dlq analysis" lists it.');
}
