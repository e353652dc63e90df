import type { Priority } from '../domain/priority.js';
import type { DeadLetterReplay, ReplayedDeadLetters } from './dead-letters-api.js';
import type { TaskFilter } from './tasks-api.js';

/** What can be done with all tasks of a filter. */
export const bulkActions = ['cancel', 'replay', 'reprioritise'] as const;
export type BulkAction = (typeof bulkActions)[number];

export interface TaskCountRequest {
  /** Counts only the tasks that this action would change. */
  readonly action?: BulkAction;
  /** The `nextCursor` of the answer before. */
  readonly cursor?: string;
}

/** One call looks at a bounded number of tasks, newest first. */
export interface TaskCount {
  /** How many of the tasks that this call looked at match. */
  readonly count: number;
  /** How many tasks this call looked at. */
  readonly scanned: number;
  /** Every task that was submitted later was looked at, by this call or an earlier one; null: all tasks were. */
  readonly searchedBackTo: Date | null;
  /** Not null: older tasks were not looked at. Calling again with it counts on. */
  readonly nextCursor: string | null;
}

export interface BulkRequest {
  /** The most that one call changes: 10,000 when absent. */
  readonly limit?: number;
  /** The `nextCursor` of the answer before. */
  readonly cursor?: string;
}

export interface CancelledTasks {
  readonly cancelled: number;
  /** Not null: there may be more. Calling again with it goes on where this call ended. */
  readonly nextCursor: string | null;
}

export interface BulkReplay extends DeadLetterReplay, BulkRequest {}

export interface BulkReprioritise extends BulkRequest {
  readonly newPriority: Priority;
}

export interface ReprioritisedTasks {
  /** How many changed: what has the priority already, or has started, stays as it is. */
  readonly reprioritised: number;
  /** Not null: there may be more. Calling again with it goes on where this call ended. */
  readonly nextCursor: string | null;
}

/** What concerns all tasks of a filter. The actions need at least one filter. */
export interface BulkApi {
  countTasks(filter: TaskFilter, request?: TaskCountRequest): Promise<TaskCount>;
  /** Without a request: all of them in one call, however many they are. */
  cancelTasks(filter: TaskFilter, request?: BulkRequest): Promise<CancelledTasks>;
  /**
   * Dead letters and failed tasks, oldest first; cancelled ones only when the filter says so. They become due one
   * after the other, `perSecond` of them.
   */
  replayTasks(filter: TaskFilter, request?: BulkReplay): Promise<ReplayedDeadLetters>;
  /** Of those that have not started, oldest first. */
  reprioritiseTasks(filter: TaskFilter, request: BulkReprioritise): Promise<ReprioritisedTasks>;
}
