import { Option, type Command } from 'commander';
import type { Priority } from '../../domain/priority.js';
import type { TaskState } from '../../domain/task-state.js';
import type { SluiceApi } from '../../protocol/api.js';
import type { BulkAction } from '../../protocol/bulk-api.js';
import { cancelledToWire, reprioritisedToWire } from '../../protocol/bulk-wire.js';
import { defined } from '../../protocol/defined.js';
import type { TaskFilter } from '../../protocol/tasks-api.js';
import { CliError } from '../failure.js';
import { inBulk } from '../in-bulk.js';
import { priorityOption, wholeNumber } from '../options.js';
import { printJson, printLine } from '../output.js';
import { printReplayed } from '../replayed.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';
import { taskFilterOf, withTaskFilter, type TaskFilterOptions } from '../task-filter.js';

interface BulkOptions extends TaskFilterOptions, RemoteOptions {
  readonly dryRun?: boolean;
}

interface ReplayOptions extends BulkOptions {
  readonly priority?: Priority;
  readonly perSecond?: number;
}

interface ReprioritiseOptions extends BulkOptions {
  readonly to: Priority;
}

/** One call changes so many at most, and the bar moves after each. */
const portion = 2_000;

export function cancelTasksCommand(tasks: Command): void {
  withBulkOptions(tasks.command('cancel'), ['pending', 'queued', 'assigned', 'executing'])
    .description('Cancel all tasks that match the filter; running handlers are told to stop')
    .action((options: BulkOptions) => runBulk('cancel', options, cancelAll));
}

export function replayTasksCommand(tasks: Command): void {
  withBulkOptions(tasks.command('replay'), ['dead_letter', 'failed', 'cancelled'])
    .description(
      'Run all tasks again that match the filter: dead letters and failed tasks; cancelled ones only by --status',
    )
    .addOption(priorityOption('--priority <priority>', 'a new priority'))
    .addOption(
      new Option('--per-second <n>', 'how many become due in a second (100)').argParser(
        wholeNumber(1, 1_000_000),
      ),
    )
    .action((options: ReplayOptions) => runBulk('replay', options, replayAll));
}

export function reprioritiseTasksCommand(tasks: Command): void {
  withBulkOptions(tasks.command('reprioritise'), ['pending', 'queued'])
    .description('Change the priority of all tasks that match the filter and have not started')
    .addOption(priorityOption('--to <priority>', 'the new priority').makeOptionMandatory())
    .action((options: ReprioritiseOptions) => runBulk('reprioritise', options, reprioritiseAll));
}

function withBulkOptions(command: Command, states: readonly TaskState[]): Command {
  return withRemoteOptions(withTaskFilter(command, states)).option(
    '--dry-run',
    'only say how many there are',
  );
}

async function runBulk<Options extends BulkOptions>(
  action: BulkAction,
  options: Options,
  run: (api: SluiceApi, filter: TaskFilter, options: Options) => Promise<void>,
): Promise<void> {
  const filter = taskFilterOf(options);
  if (Object.keys(filter).length === 0) {
    throw new CliError(
      'Which ones? Name --status, --queue, --type, --user, --workflow, --tag or --text.',
      { exitCode: 2 },
    );
  }
  const api = await remoteApi(options);
  if (options.dryRun !== true) {
    await run(api, filter, options);
    return;
  }
  const count = await countAll(api, filter, action);
  if (options.json === true) printJson({ would_change: count });
  else printLine(`${count} would be ${doneBy[action]}`);
}

const doneBy: Readonly<Record<BulkAction, string>> = {
  cancel: 'cancelled',
  replay: 'replayed',
  reprioritise: 'given the new priority',
};

async function countAll(api: SluiceApi, filter: TaskFilter, action: BulkAction): Promise<number> {
  let count = 0;
  for (let cursor: string | null | undefined; cursor !== null;) {
    const counted = await api.countTasks(filter, { action, ...defined({ cursor }) });
    count += counted.count;
    cursor = counted.nextCursor;
  }
  return count;
}

async function cancelAll(api: SluiceApi, filter: TaskFilter, options: BulkOptions): Promise<void> {
  const answers = await inBulk({
    done: doneBy.cancel,
    call: (cursor) => api.cancelTasks(filter, { limit: portion, ...defined({ cursor }) }),
    countOf: (answer) => answer.cancelled,
    countLeft: () => countAll(api, filter, 'cancel'),
  });
  const cancelled = sum(answers.map((answer) => answer.cancelled));
  if (options.json === true) printJson(cancelledToWire({ cancelled, nextCursor: null }));
  else printLine(`${cancelled} cancelled`);
}

async function replayAll(
  api: SluiceApi,
  filter: TaskFilter,
  options: ReplayOptions,
): Promise<void> {
  const { priority: newPriority, perSecond } = options;
  const request = { limit: portion, ...defined({ newPriority, perSecond }) };
  const answers = await inBulk({
    done: doneBy.replay,
    call: (cursor) => api.replayTasks(filter, { ...request, ...defined({ cursor }) }),
    countOf: (answer) => answer.replayed,
    countLeft: () => countAll(api, filter, 'replay'),
  });
  printReplayed(answers, options);
}

async function reprioritiseAll(
  api: SluiceApi,
  filter: TaskFilter,
  { to: newPriority, json }: ReprioritiseOptions,
): Promise<void> {
  const request = { newPriority, limit: portion };
  const answers = await inBulk({
    done: 'reprioritised',
    call: (cursor) => api.reprioritiseTasks(filter, { ...request, ...defined({ cursor }) }),
    countOf: (answer) => answer.reprioritised,
    countLeft: () => countAll(api, filter, 'reprioritise'),
  });
  const reprioritised = sum(answers.map((answer) => answer.reprioritised));
  if (json === true) printJson(reprioritisedToWire({ reprioritised, nextCursor: null }));
  else printLine(`${reprioritised} have priority ${newPriority} now`);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
