import { Option, type Command } from 'commander';
import { taskStates, type TaskState } from '../domain/task-state.js';
import { defined } from '../protocol/defined.js';
import type { TaskFilter } from '../protocol/tasks-api.js';

export interface TaskFilterOptions {
  readonly status?: TaskState;
  readonly queue?: string;
  readonly type?: string;
  readonly user?: string;
  readonly workflow?: string;
  readonly tag?: string;
  readonly text?: string;
}

export function withTaskFilter(
  command: Command,
  states: readonly TaskState[] = taskStates,
): Command {
  return command
    .addOption(new Option('--status <state>', 'only in this state').choices(states))
    .option('--queue <name>', 'only of this queue')
    .option('--type <type>', 'only of this task type')
    .option('--user <id>', 'only of this user')
    .option('--workflow <id>', 'only of this workflow')
    .option('--tag <tag>', 'only with this tag')
    .option('--text <text>', 'only with this text in their parameters');
}

export function taskFilterOf(options: TaskFilterOptions): TaskFilter {
  const { status, queue, type: taskType, user: userId, workflow: workflowId, tag, text } = options;
  return defined({ status, queue, taskType, userId, workflowId, tag, text });
}
