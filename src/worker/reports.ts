import { SluiceError, type ErrorCode } from '../domain/errors.js';
import type { Lease, TaskId } from '../domain/ids.js';
import { attemptErrorCodes } from '../domain/attempt-error.js';
import { bounds } from '../protocol/bounds.js';
import type { Held, Report, ReportAnswer } from '../protocol/workers-api.js';
import type { Logger } from '../runtime/log.js';
import { asLogged, isKeyRefused, pause, retryDelayMs } from './backoff.js';
import { Condition } from './condition.js';
import { jsonWeight } from './json-weight.js';

export interface ReportsOptions {
  readonly send: (reports: readonly Report[]) => Promise<readonly ReportAnswer[]>;
  /** Tasks whose results the server has not acknowledged, before no more are claimed. */
  readonly maxUnacknowledged: number;
  /** Nor when their results take more memory than this; about. */
  readonly maxUnacknowledgedBytes: number;
  /** Further results did not arrive: the server should know that their tasks have ended. */
  readonly onUndelivered?: () => void;
  readonly log: Logger;
}

const maxBatch = 500;
/** A quarter of what one request may carry: weights are about right, not exact. */
const maxBatchBytes = bounds.requestBytes / 4;
const leaseLost = 'its lease was lost before its result';
const tellEveryMs = 1_000;
/** A call that is not answered by then counts as one that did not arrive, until it is. */
const lateMs = 1_000;

/**
 * The refusals of a result that sending it again would not change. Everything else, whatever its status,
 * means that the result did not arrive: a proxy may have answered, or the server has trouble of its own.
 */
const finalCodes: ReadonlySet<ErrorCode> = new Set([
  'lease_lost',
  'payload_too_large',
  'invalid_request',
  'invalid_json',
]);

function isFinal(error: unknown): error is SluiceError {
  if (!(error instanceof SluiceError) || !finalCodes.has(error.code)) return false;
  // Without a field at fault it is about the HTTP of the request, which a proxy may have spoilt.
  return error.code !== 'invalid_request' || error.errors !== null;
}

/** Null: no answer came, and none will. */
export type Heard = (answer: ReportAnswer | null) => void;

/** A report that the server has not acknowledged. */
interface Kept {
  readonly report: Report;
  readonly bytes: number;
  readonly heard: Heard;
  /** It says that the result itself was refused. */
  readonly isRefusal: boolean;
  /** How often it failed in a call of its own. */
  readonly failures: number;
}

/**
 * Results on their way to the server: those that end together go together, and a lone one waits for
 * nothing. Each is kept and sent again until the server itself has answered it. After a failure the calls
 * become smaller, down to one result. One that fails alone is a suspect, which a proxy may refuse for its
 * content: suspects are sent beside the others, one at a time, and hold up none of them.
 */
export class Reports {
  readonly #options: ReportsOptions;
  readonly #unacknowledged = new Map<Lease, TaskId>();
  /** Those of them that were sent and did not arrive, or not yet. */
  readonly #undelivered = new Map<Lease, TaskId>();
  readonly #condition = new Condition();
  readonly #givingUp = new AbortController();
  readonly #waiting: Kept[] = [];
  readonly #suspects: Kept[] = [];
  #unacknowledgedBytes = 0;
  #isSending = false;
  #isSendingSuspects = false;
  #batchSize = maxBatch;
  /** In a row, without those of suspects. */
  #failures = 0;
  #toldAtMs = -Infinity;

  constructor(options: ReportsOptions) {
    this.#options = options;
  }

  get unacknowledged(): readonly Held[] {
    return Array.from(this.#unacknowledged, ([lease, taskId]) => ({ taskId, lease }));
  }

  /** As many as a heartbeat may name, the oldest first. */
  get undelivered(): readonly TaskId[] {
    return [...this.#undelivered.values()].slice(0, bounds.undeliveredTasks);
  }

  /** `heard` is called when the server has answered, or when there is no hope that it will. */
  send(report: Report, heard: Heard = () => undefined): void {
    const bytes = weigh(report);
    this.#unacknowledged.set(report.lease, report.taskId);
    this.#unacknowledgedBytes += bytes;
    this.#waiting.push({ report, bytes, heard, isRefusal: false, failures: 0 });
    this.#condition.changed();
    this.#wake();
  }

  #wake(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    // On a microtask, so that results that end together go together.
    queueMicrotask(() => void this.#sendWaiting());
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
    return this.#condition.until(() => this.isEmpty, signal);
  }

  /** What has not been delivered by now will not be: its leases lapse, or are given back. */
  giveUp(): void {
    this.#givingUp.abort();
    this.#condition.changed();
  }

  async #sendWaiting(): Promise<void> {
    const { signal } = this.#givingUp;
    while (this.#waiting.length > 0 && !signal.aborted) {
      const batch = this.#takeBatch();
      const failure = await this.#deliver(batch);
      if (failure === null) {
        this.#failures = 0;
        this.#batchSize = Math.min(maxBatch, this.#batchSize * 2);
      } else {
        const delayMs = this.#putBack(batch, failure.error);
        if (delayMs > 0) await pause(delayMs, signal);
      }
    }
    this.#isSending = false;
    this.#abandon(this.#waiting);
  }

  /** Null: the server has answered. */
  async #deliver(batch: readonly Kept[]): Promise<{ readonly error: unknown } | null> {
    let answers: readonly ReportAnswer[];
    const late = setTimeout(() => this.#noteUndelivered(batch), lateMs);
    try {
      answers = await this.#options.send(batch.map(({ report }) => report));
    } catch (error) {
      if (!isFinal(error)) this.#noteUndelivered(batch);
      return { error };
    } finally {
      clearTimeout(late);
    }
    batch.forEach((kept, index) => {
      const answer = answers[index] ?? null;
      this.#acknowledge(kept, answer?.accepted === false ? leaseLost : null, answer);
    });
    return null;
  }

  /** Answers how long to wait before the next call with results that wait. */
  #putBack(batch: readonly Kept[], error: unknown): number {
    const [only] = batch;
    if (only !== undefined && batch.length === 1) return this.#putBackAlone(only, error);
    this.#batchSize = batch.length >> 1;
    if (isFinal(error)) {
      this.#waiting.unshift(...batch);
      return 0;
    }
    this.#waiting.push(...batch);
    this.#tell(error);
    this.#failures += 1;
    return retryDelayMs(error, this.#failures - 1);
  }

  /** The fault may be its own, so the wait of the others does not grow. */
  #putBackAlone(kept: Kept, error: unknown): number {
    if (isFinal(error)) {
      this.#refuse(kept, error);
      return 0;
    }
    this.#tell(error);
    this.#suspects.push({ ...kept, failures: 1 });
    if (!this.#isSendingSuspects) void this.#sendSuspects(retryDelayMs(error, 1));
    return retryDelayMs(error, this.#failures);
  }

  /** In an outage all may be suspects: one call at a time, less and less often until one is answered. */
  async #sendSuspects(firstDelayMs: number): Promise<void> {
    this.#isSendingSuspects = true;
    const { signal } = this.#givingUp;
    let failures = 1;
    await pause(firstDelayMs, signal);
    for (let next = this.#takeSuspect(); next !== undefined; next = this.#takeSuspect()) {
      const failure = await this.#deliver([next]);
      if (failure === null) {
        failures = 0;
      } else if (isFinal(failure.error)) {
        failures = 0;
        this.#refuse(next, failure.error);
      } else {
        failures += 1;
        this.#suspects.push({ ...next, failures: next.failures + 1 });
        this.#tell(failure.error);
        await pause(retryDelayMs(failure.error, failures), signal);
      }
    }
    this.#isSendingSuspects = false;
    this.#abandon(this.#suspects);
  }

  /** The one that failed least: those that never pass do not hold up the one that failed by chance. */
  #takeSuspect(): Kept | undefined {
    if (this.#givingUp.signal.aborted) return undefined;
    const fewest = Math.min(...this.#suspects.map(({ failures }) => failures));
    const index = this.#suspects.findIndex(({ failures }) => failures === fewest);
    return index === -1 ? undefined : this.#suspects.splice(index, 1)[0];
  }

  /** As many as one call carries. */
  #takeBatch(): Kept[] {
    let bytes = 0;
    const tooMuch = this.#waiting.findIndex((kept, index) => {
      bytes += kept.bytes;
      return index === this.#batchSize || (index > 0 && bytes > maxBatchBytes);
    });
    return this.#waiting.splice(0, tooMuch === -1 ? this.#waiting.length : tooMuch);
  }

  #abandon(kept: Kept[]): void {
    for (const one of kept.splice(0)) {
      this.#acknowledge(one, 'stopped before its result was delivered');
    }
  }

  /** The task must not wait for its timeout because its result can't be sent: it fails, and says why. */
  #refuse(kept: Kept, refusal: SluiceError): void {
    const { taskId, lease } = kept.report;
    if (refusal.code === 'lease_lost') {
      this.#acknowledge(kept, leaseLost, { taskId, accepted: false, reason: 'lease_lost' });
      return;
    }
    const text = kept.isRefusal ? 'nor can its refusal be reported' : 'the result was refused';
    this.#options.log.error({ task_id: taskId, err: refusal }, text);
    if (kept.isRefusal) {
      this.#acknowledge(kept);
      return;
    }
    const tooLarge = refusal.code === 'payload_too_large';
    const report: Report = {
      taskId,
      lease,
      status: 'failed',
      error: {
        code: tooLarge ? attemptErrorCodes.resultTooLarge : 'RESULT_REFUSED',
        message: refusal.message,
        retriable: false,
      },
    };
    this.#waiting.unshift({ ...kept, report, isRefusal: true });
    this.#wake();
  }

  #acknowledge(
    { report, bytes, heard }: Kept,
    trouble: string | null = null,
    answer: ReportAnswer | null = null,
  ): void {
    if (trouble !== null) this.#options.log.warn({ task_id: report.taskId }, trouble);
    this.#unacknowledged.delete(report.lease);
    this.#undelivered.delete(report.lease);
    this.#unacknowledgedBytes -= bytes;
    this.#condition.changed();
    heard(answer);
  }

  #noteUndelivered(batch: readonly Kept[]): void {
    const before = this.#undelivered.size;
    for (const { report } of batch) this.#undelivered.set(report.lease, report.taskId);
    if (this.#undelivered.size > before) this.#options.onUndelivered?.();
  }

  /** Once a second at most. Of a refused key the session speaks. */
  #tell(error: unknown): void {
    const nowMs = performance.now();
    if (isKeyRefused(error) || nowMs - this.#toldAtMs < tellEveryMs) return;
    this.#toldAtMs = nowMs;
    const results = this.#unacknowledged.size;
    this.#options.log.warn({ ...asLogged(error), results }, 'results wait for the server');
  }
}

function weigh(report: Report): number {
  return jsonWeight(report.status === 'completed' ? report.result : report.error.details);
}
