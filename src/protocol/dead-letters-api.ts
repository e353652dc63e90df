import type { Confinement } from '../domain/confinement.js';
import type { TaskId } from '../domain/ids.js';
import type { Page } from './page.js';
import type { ListedTask, ListRequest, ReplayRequest } from './tasks-api.js';

export interface DeadLetterFilter {
  readonly queue?: string;
  readonly taskType?: string;
  readonly code?: string;
  /** Of this pattern, as the analysis names it. */
  readonly pattern?: string;
  /** That ended then or later. */
  readonly since?: Date;
  /** That ended before. */
  readonly until?: Date;
  /** What the caller reaches; never a part of a request. */
  readonly within?: Confinement;
}

export interface DeadLetterReplay extends ReplayRequest {
  /** How many become due in a second, so that what broke is not run over; 100 when absent. */
  readonly perSecond?: number;
  /** The `nextCursor` of the answer before. */
  readonly cursor?: string;
}

/** What one call replays is bounded. What it answers with is committed. */
export interface ReplayedDeadLetters {
  readonly replayed: number;
  /** When the last of them may run; null: there was none. */
  readonly lastDueAt: Date | null;
  /** Not null: there are more. Calling again with it goes on where this call ended. */
  readonly nextCursor: string | null;
}

/** Dead letters of one task type and error code whose messages differ only in numbers, ids and the like. */
export interface DeadLetterPattern {
  /** The same on every server and after every restart; a filter for lists and replays. */
  readonly id: string;
  /** `*` with the code `*`: all that has no other pattern, since there are too many. */
  readonly taskType: string;
  readonly code: string;
  /** With placeholders. Null: all messages of this type and code that have no pattern of their own. */
  readonly message: string | null;
  readonly count: number;
  /** The ten with the most of them. */
  readonly queues: readonly { readonly queue: string; readonly count: number }[];
  readonly queueCount: number;
  /** How many tasks became dead letters in each of the last 24 hours (UTC), the present one last. */
  readonly hourly: readonly number[];
  /** Also of those that are gone: a pattern is remembered for 90 days. */
  readonly firstSeen: Date;
  readonly lastSeen: Date;
  /** Of how many of them another attempt could go better, from 0 to 1. */
  readonly retriableShare: number;
  readonly example: { readonly taskId: TaskId; readonly message: string };
}

export interface DeadLetterPage extends Page<ListedTask> {
  /** How many the filter matches: exact up to 10,000, then a lower bound. */
  readonly totalCount: number;
}

export interface DeadLetterApi {
  listDeadLetters(filter: DeadLetterFilter, page?: ListRequest): Promise<DeadLetterPage>;
  replayDeadLetters(
    filter: DeadLetterFilter,
    request?: DeadLetterReplay,
  ): Promise<ReplayedDeadLetters>;
  analyseDeadLetters(within?: Confinement): Promise<readonly DeadLetterPattern[]>;
}
