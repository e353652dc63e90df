import type { Command } from 'commander';
import type { TaskId } from '../../domain/ids.js';
import { hasEnded } from '../../domain/task-state.js';
import { explanationToWire, taskToWire } from '../../protocol/tasks-wire.js';
import type { Explanation, TaskView } from '../../protocol/tasks-api.js';
import { taskId as asTaskId } from '../options.js';
import { paint, printFields, printJson, printLine, printTable } from '../output.js';
import { oneLine, readableAge, readableSeconds, readableState } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

interface TaskCommandOptions extends RemoteOptions {
  readonly explain?: boolean;
}

export function taskCommand(program: Command): void {
  const command = program
    .command('task')
    .argument('<id>', 'the task', asTaskId)
    .description('Show one task: its state, attempts and result')
    .option('--explain', 'why it is not running');
  withRemoteOptions(command).action(runTask);
}

async function runTask(taskId: TaskId, options: TaskCommandOptions): Promise<void> {
  const api = await remoteApi(options);
  if (options.explain === true) {
    const explanation = await api.explainTask(taskId);
    if (options.json === true) printJson(explanationToWire(explanation));
    else printExplanation(explanation);
    return;
  }
  const task = await api.getTask(taskId, { history: true });
  if (options.json === true) printJson(taskToWire(task));
  else printTask(task);
}

function printExplanation({ taskId, status, reasons, notes = [] }: Explanation): void {
  printLine(`${taskId} is ${readableState(status)}`);
  for (const { kind, detail, until } of reasons) {
    const when = until === undefined ? '' : paint('dim', ` until ${until.toISOString()}`);
    printLine(`  ${paint('bold', kind)}  ${detail}${when}`);
  }
  if (reasons.length === 0) {
    printLine(hasEnded(status) ? '  It has ended.' : '  Nothing holds it up.');
  }
  for (const note of notes) printLine(`  ${paint('bold', 'note')}  ${note}`);
}

function printTask(task: TaskView): void {
  const { progress, error, workflowId, startedAt, executionDurationSeconds } = task;
  const ran = executionDurationSeconds === null ? null : readableSeconds(executionDurationSeconds);
  printFields([
    ['task', task.taskId],
    ['state', readableState(task.status)],
    ['type', task.taskType],
    ['queue', task.queue],
    ['priority', priorityOf(task)],
    ['submitted', `${task.createdAt.toISOString()} (${readableAge(task.createdAt, new Date())})`],
    ...field('waited', startedAt && waited(task.createdAt, startedAt)),
    ...field('ran', ran),
    ...field('attempt', task.attempt === 0 ? null : `${task.attempt}, ${retries(task)}`),
    ...field('deferrals', task.deferrals === 0 ? null : String(task.deferrals)),
    ...field('returns', task.returns === 0 ? null : String(task.returns)),
    ...field('worker', task.assignedWorkerId),
    ...field('workflow', workflowId),
    ...field('progress', progress && `${progress.percent} % ${progress.message ?? ''}`.trim()),
    ['parameters', JSON.stringify(task.parameters)],
    ...field('result', task.status === 'completed' ? JSON.stringify(task.result) : null),
    ...field('error', error && paint('red', `${error.code}: ${error.message}`)),
  ]);
  printHistory(task);
}

function printHistory({ history }: TaskView): void {
  if (history === undefined || history.attempts.length === 0) return;
  printLine();
  printTable(
    [
      { title: 'attempt', align: 'right' },
      { title: 'worker', spare: 1 },
      { title: 'outcome' },
      { title: 'began', spare: 2 },
      { title: 'ran', align: 'right' },
      { title: 'why', least: 40 },
    ],
    history.attempts.map(({ attempt, workerId, outcome, startedAt, endedAt, error }) => [
      String(attempt),
      workerId,
      outcome,
      startedAt.toISOString(),
      readableSeconds((endedAt.getTime() - startedAt.getTime()) / 1000),
      error === undefined ? '' : oneLine(`${error.code}: ${error.message}`),
    ]),
  );
}

function field(name: string, value: string | null): [string, string][] {
  return value === null ? [] : [[name, value]];
}

function waited(from: Date, to: Date): string {
  return readableSeconds((to.getTime() - from.getTime()) / 1000);
}

function priorityOf({ priority, effectivePriority }: TaskView): string {
  return priority === effectivePriority ? priority : `${priority}, by now ${effectivePriority}`;
}

function retries({ retryCount, maxRetries }: TaskView): string {
  return `${retryCount} of ${maxRetries} retries used`;
}
