import type { SubmitOutcome, TaskDraft } from '../protocol/tasks-api.js';
import type { AttemptTracing } from '../worker/tracing.js';

type Outcomes = readonly (SubmitOutcome | undefined)[];

/** Makes spans of what is submitted and run; `sluice/otel` has one. A client without it pays nothing. */
export interface Tracing extends AttemptTracing {
  /** Sends the drafts with the context of their trace, and answers what `send` answers. */
  submit(
    drafts: readonly TaskDraft[],
    send: (drafts: readonly TaskDraft[]) => Promise<Outcomes>,
  ): Promise<Outcomes>;
}
