import type { Confinement } from '../domain/confinement.js';
import type { TaskId } from '../domain/ids.js';
import type { Page } from './page.js';
import type { ListedTask, ListRequest, ReplayRequest } from './tasks-api.js';

export interface DeadLetterFilter {
  readonly queue?: string;
  readonly taskType?: string;
  readonly code?: string;
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

export interface DeadLetterPattern {
  readonly queue: string;
  readonly taskType: string;
  readonly code: string;
  readonly count: number;
  readonly firstSeen: Date;
  readonly lastSeen: Date;
  readonly retriable: boolean;
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
