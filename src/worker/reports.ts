import { SluiceError } from '../domain/errors.js';
import type { Lease, TaskId } from '../domain/ids.js';
import { attemptErrorCodes } from '../domain/attempt-error.js';
import { bounds } from '../protocol/bounds.js';
import type { Held, Report, ReportAnswer } from '../protocol/workers-api.js';
import { Batcher } from '../runtime/batcher.js';
import type { Logger } from '../runtime/log.js';
import { asLogged, isAway, pause, retryDelayMs } from './backoff.js';
import { Condition } from './condition.js';
import { jsonWeight } from './json-weight.js';

export interface ReportsOptions {
  readonly send: (reports: readonly Report[]) => Promise<readonly ReportAnswer[]>;
  /** Tasks whose results the server has not acknowledged, before no more are claimed. */
  readonly maxUnacknowledged: number;
  /** Nor when their results take more memory than this; about. */
  readonly maxUnacknowledgedBytes: number;
  readonly log: Logger;
}

const maxBatch = 500;
/** A quarter of what one request may carry: weights are about right, not exact. */
const maxBatchBytes = bounds.requestBytes / 4;

interface WeighedReport {
  readonly report: Report;
  readonly bytes: number;
}

/**
 * Results on their way to the server: those that end together go together, a lone one waits for
 * nothing, and while the server is away they are kept and sent again.
 */
export class Reports {
  readonly #options: ReportsOptions;
  readonly #batcher: Batcher<WeighedReport, ReportAnswer | null>;
  readonly #unacknowledged = new Map<Lease, TaskId>();
  #unacknowledgedBytes = 0;
  readonly #condition = new Condition();
  readonly #givingUp = new AbortController();

  constructor(options: ReportsOptions) {
    this.#options = options;
    this.#batcher = new Batcher({
      flush: (weighed) => this.#deliver(weighed.map(({ report }) => report)),
      maxItems: maxBatch,
      weigh: ({ bytes }) => bytes,
      maxWeight: maxBatchBytes,
    });
  }

  get unacknowledged(): readonly Held[] {
    return Array.from(this.#unacknowledged, ([lease, taskId]) => ({ taskId, lease }));
  }

  /** `heard` is called when the server has answered, or when there is no hope that it will. */
  send(report: Report, heard: () => void = () => undefined): void {
    const weighed: WeighedReport = { report, bytes: weigh(report) };
    this.#unacknowledged.set(report.lease, report.taskId);
    this.#unacknowledgedBytes += weighed.bytes;
    this.#batcher.push(weighed, (settled) => {
      if (settled.kind === 'done') {
        this.#note(report, settled.outcome);
        this.#acknowledge(weighed, heard);
      } else {
        this.#sendRefusal(report, settled.error, () => this.#acknowledge(weighed, heard));
      }
    });
  }

  get isEmpty(): boolean {
    return this.#unacknowledged.size === 0;
  }

  get hasRoom(): boolean {
    const { maxUnacknowledged, maxUnacknowledgedBytes } = this.#options;
    return (
      this.#unacknowledged.size < maxUnacknowledged &&
      this.#unacknowledgedBytes < maxUnacknowledgedBytes
    );
  }

  whenRoom(signal?: AbortSignal): Promise<void> {
    return this.#condition.until(() => this.hasRoom, signal);
  }

  whenEmpty(signal?: AbortSignal): Promise<void> {
    return this.#condition.until(() => this.#unacknowledged.size === 0, signal);
  }

  /** What has not been delivered by now will not be: its leases lapse, or are given back. */
  giveUp(): void {
    this.#givingUp.abort();
  }

  #acknowledge({ report, bytes }: WeighedReport, heard: () => void): void {
    this.#unacknowledged.delete(report.lease);
    this.#unacknowledgedBytes -= bytes;
    this.#condition.changed();
    heard();
  }

  /** The task must not wait for its timeout because its result can't be sent: it fails, and says why. */
  #sendRefusal({ taskId, lease }: Report, refusal: unknown, heard: () => void): void {
    const { log } = this.#options;
    log.error({ task_id: taskId, err: refusal }, 'the result was refused');
    const tooLarge = refusal instanceof SluiceError && refusal.code === 'payload_too_large';
    const report: Report = {
      taskId,
      lease,
      status: 'failed',
      error: {
        code: tooLarge ? attemptErrorCodes.resultTooLarge : 'RESULT_REFUSED',
        message: refusal instanceof Error ? refusal.message : String(refusal),
        retriable: false,
      },
    };
    this.#batcher.push({ report, bytes: weigh(report) }, (settled) => {
      if (settled.kind === 'done') this.#note(report, settled.outcome);
      else log.error({ task_id: taskId, err: settled.error }, 'nor can its refusal be reported');
      heard();
    });
  }

  #note({ taskId }: Report, answer: ReportAnswer | null): void {
    const { log } = this.#options;
    if (answer === null) log.warn({ task_id: taskId }, 'stopped before its result was delivered');
    else if (!answer.accepted)
      log.warn({ task_id: taskId }, 'its lease was lost before its result');
  }

  /** A refusal is thrown: the batcher then finds the one report that it is about. */
  async #deliver(reports: readonly Report[]): Promise<readonly (ReportAnswer | null)[]> {
    const { send, log } = this.#options;
    const { signal } = this.#givingUp;
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        return await send(reports);
      } catch (error) {
        if (!isAway(error)) throw error;
        log.warn({ ...asLogged(error), results: reports.length }, 'results wait for the server');
        await pause(retryDelayMs(error, failures), signal);
      }
    }
    return reports.map(() => null);
  }
}

function weigh(report: Report): number {
  return jsonWeight(report.status === 'completed' ? report.result : report.error.details);
}
