import type { TaskId, WorkerId } from '../domain/ids.js';
import type { PushbackEffect } from '../domain/pushback.js';
import type { Page, PageRequest } from './page.js';

/** An answer of a service that wants no calls for now. */
export interface Pushback {
  readonly at: Date;
  readonly queue: string;
  readonly taskId: TaskId;
  readonly taskType: string;
  readonly workerId: WorkerId;
  readonly code: string;
  /** What the service said. */
  readonly message: string;
  readonly retryAfterMs: number | null;
  /** How many answers of that second it stands for. */
  readonly answers: number;
  readonly became: PushbackEffect;
  /** Until when the queue stood still; null: it went on. */
  readonly until: Date | null;
}

export interface PushbackApi {
  /** Newest first. */
  listPushbacks(queue: string, page?: PageRequest): Promise<Page<Pushback>>;
}
