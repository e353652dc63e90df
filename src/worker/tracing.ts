import type { WorkerId } from '../domain/ids.js';
import type { Cost } from '../domain/queue-settings.js';
import type { ReportAnswer } from '../protocol/workers-api.js';
import type { Outcome } from './execution.js';
import type { RunningTask } from './handler.js';

/** Makes spans of the attempts of a worker; `sluice/otel` has one. A worker without it pays nothing. */
export interface AttemptTracing {
  /** Before the handler of an attempt is called. */
  begin(task: RunningTask, workerId: WorkerId): AttemptTrace;
}

export interface AttemptTrace {
  /** Calls it at once, in the context that the handler is to see, and answers what it answers. */
  run<Answer>(call: () => Answer): Answer;
  /** The attempt is over. Answers what it used, as far as it is known; it counts when the handler said nothing. */
  ended(outcome: Outcome): Cost | null;
  /** The result is sent. Answers what is called with the answer; null: none came, and none will. */
  settling(): (answer: ReportAnswer | null) => void;
}
