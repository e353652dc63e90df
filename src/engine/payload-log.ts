import type { AttemptError } from '../domain/attempt-error.js';
import type { TaskId } from '../domain/ids.js';
import type { JsonObject, JsonValue } from '../domain/json.js';
import type { SubmitOutcome, TaskDraft } from '../protocol/tasks-api.js';
import type { Report } from '../protocol/workers-api.js';
import type { Logger } from '../runtime/log.js';

/** What stands in the log for a value; `path` is a JSON pointer. Anything else is looked into. */
type Redact = (path: string, value: unknown) => unknown;

export interface PayloadLogging {
  /** Default: what is called password, token, key, … is hidden. */
  readonly redact?: Redact;
}

/** Parameters, results and errors in the log: for those who ask for it, and nobody else. */
export class PayloadLog {
  readonly #log: Logger;
  readonly #redact: Redact;

  constructor(log: Logger, { redact = hideSecrets }: PayloadLogging) {
    this.#log = log;
    this.#redact = redact;
  }

  submitted(drafts: readonly TaskDraft[], outcomes: readonly SubmitOutcome[]): void {
    outcomes.forEach((outcome, index) => {
      if (outcome.kind !== 'accepted') return;
      this.#tell(outcome.receipt.taskId, 'parameters', drafts[index]?.parameters ?? {});
    });
  }

  reported(reports: readonly Report[]): void {
    for (const report of reports) {
      if (report.status === 'failed')
        this.#tell(report.taskId, 'error', withoutStack(report.error));
      else this.#tell(report.taskId, 'result', report.result ?? null);
    }
  }

  #tell(taskId: TaskId, what: string, value: unknown): void {
    const shown = redacted(`/${what}`, value, this.#redact);
    this.#log.info({ task_id: taskId, [what]: shown }, `its ${what}`);
  }
}

/** Where a handler threw is told with the task. In the log it would be a line of 8 KiB for each failure. */
function withoutStack(error: AttemptError | undefined): AttemptError | undefined {
  const details = error?.details;
  if (error === undefined || !isObject(details) || !('stack' in details)) return error;
  const { stack: _, ...others } = details;
  return { ...error, details: others };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A copy in which `redact` has had its say about every member. */
export function redacted(path: string, value: unknown, redact: Redact): unknown {
  const said = redact(path, value);
  if (said !== value || typeof value !== 'object' || value === null) return said;
  if (Array.isArray(value)) {
    return value.map((item, index) => redacted(`${path}/${index}`, item, redact));
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      redacted(`${path}/${escaped(key)}`, member, redact),
    ]),
  );
}

function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

const secretName =
  /pass(?:word|phrase|wd)?$|secret|token$|api[-_]?key|private[-_]?key|authorization|cookie|credential/i;

/** By name: what looks like a secret may be one. Numbers, as in `max_token`, are none. */
export const hideSecrets: Redact = (path, value) => {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const hides = typeof value === 'string' || (typeof value === 'object' && value !== null);
  return hides && secretName.test(name) ? '[hidden]' : value;
};
