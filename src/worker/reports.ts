import { SluiceError, type ErrorCode } from '../domain/errors.js';
import type { Lease, TaskId } from '../domain/ids.js';
import { attemptErrorCodes } from '../domain/attempt-error.js';
import { bounds } from '../protocol/bounds.js';
import type { Held, Report, ReportAnswer } from '../protocol/workers-api.js';
import type { Logger } from '../runtime/log.js';
import { asLogged, backoffMs, isKeyRefused, pause, retryDelayMs } from './backoff.js';
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
const tellEveryMs = 1_000;

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

/** A report that the server has not acknowledged. */
interface Kept {
  readonly report: Report;
  readonly bytes: number;
  readonly heard: () => void;
  /** It says that the result itself was refused. */
  readonly isRefusal: boolean;
  /** How often it failed in a call of its own, and when it is tried again at the soonest. */
  readonly failures: number;
  readonly dueAtMs: number;
}

/**
 * Results on their way to the server: those that end together go together, and a lone one waits for
 * nothing. Each is kept and sent again until the server itself has answered it. After a failure the calls
 * become smaller, down to one result: what a proxy refuses for its content holds up no other.
 */
export class Reports {
  readonly #options: ReportsOptions;
  readonly #unacknowledged = new Map<Lease, TaskId>();
  readonly #condition = new Condition();
  readonly #givingUp = new AbortController();
  readonly #waiting: Kept[] = [];
  /** Those that failed in a call of their own. */
  readonly #suspects: Kept[] = [];
  #unacknowledgedBytes = 0;
  #isSending = false;
  #batchSize = maxBatch;
  #failures = 0;
  #toldAtMs = -Infinity;

  constructor(options: ReportsOptions) {
    this.#options = options;
  }

  get unacknowledged(): readonly Held[] {
    return Array.from(this.#unacknowledged, ([lease, taskId]) => ({ taskId, lease }));
  }

  /** `heard` is called when the server has answered, or when there is no hope that it will. */
  send(report: Report, heard: () => void = () => undefined): void {
    const bytes = weigh(report);
    this.#unacknowledged.set(report.lease, report.taskId);
    this.#unacknowledgedBytes += bytes;
    const kept = { report, bytes, heard, isRefusal: false, failures: 0, dueAtMs: -Infinity };
    this.#waiting.push(kept);
    this.#condition.changed();
    if (this.#isSending) return;
    this.#isSending = true;
    // On a microtask, so that results that end together go together.
    queueMicrotask(() => void this.#sendAll());
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

  async #sendAll(): Promise<void> {
    const { signal } = this.#givingUp;
    while (this.#waiting.length + this.#suspects.length > 0 && !signal.aborted) {
      const batch = this.#takeBatch();
      if (batch.length === 0) await this.#untilDue(signal);
      else await this.#sendBatch(batch, signal);
    }
    this.#isSending = false;
    for (const kept of [...this.#waiting.splice(0), ...this.#suspects.splice(0)]) {
      this.#acknowledge(kept, 'stopped before its result was delivered');
    }
  }

  async #sendBatch(batch: readonly Kept[], signal: AbortSignal): Promise<void> {
    let answers: readonly ReportAnswer[];
    try {
      answers = await this.#options.send(batch.map(({ report }) => report));
    } catch (error) {
      const delayMs = this.#putBack(batch, error);
      if (delayMs > 0) await pause(delayMs, signal);
      return;
    }
    this.#failures = 0;
    this.#batchSize = Math.min(maxBatch, this.#batchSize * 2);
    batch.forEach((kept, index) => {
      const isLost = answers[index]?.accepted === false;
      this.#acknowledge(kept, isLost ? 'its lease was lost before its result' : null);
    });
  }

  /** Answers how long to wait before anything is sent again. */
  #putBack(batch: readonly Kept[], error: unknown): number {
    const [only] = batch;
    const isAlone = only !== undefined && batch.length === 1;
    this.#batchSize = Math.max(1, batch.length >> 1);
    if (isFinal(error)) {
      if (isAlone) this.#refuse(only, error);
      else this.#waiting.unshift(...batch);
      return 0;
    }
    if (isAlone) this.#suspect(only);
    else this.#waiting.push(...batch);
    this.#tell(error);
    this.#failures += 1;
    return retryDelayMs(error, this.#failures - 1);
  }

  /** It may be the one that a proxy refuses for its content: from now on it goes alone. */
  #suspect(kept: Kept): void {
    const failures = kept.failures + 1;
    const dueAtMs = performance.now() + backoffMs(failures, Math.random());
    this.#suspects.push({ ...kept, failures, dueAtMs });
  }

  /** A suspect that is due, or as many of the others as one call carries. */
  #takeBatch(): Kept[] {
    const nowMs = performance.now();
    const due = this.#suspects.findIndex(({ dueAtMs }) => dueAtMs <= nowMs);
    if (due !== -1) return this.#suspects.splice(due, 1);
    let bytes = 0;
    const tooMuch = this.#waiting.findIndex((kept, index) => {
      bytes += kept.bytes;
      return index === this.#batchSize || (index > 0 && bytes > maxBatchBytes);
    });
    return this.#waiting.splice(0, tooMuch === -1 ? this.#waiting.length : tooMuch);
  }

  /** Until the next suspect is due, or another result comes, which need not wait. */
  async #untilDue(signal: AbortSignal): Promise<void> {
    const dueAtMs = Math.min(...this.#suspects.map((kept) => kept.dueAtMs));
    const due = new AbortController();
    const timer = setTimeout(() => due.abort(), dueAtMs - performance.now());
    const isWoken = () => signal.aborted || this.#waiting.length > 0;
    await this.#condition.until(isWoken, due.signal);
    clearTimeout(timer);
  }

  /** The task must not wait for its timeout because its result can't be sent: it fails, and says why. */
  #refuse(kept: Kept, refusal: SluiceError): void {
    const { taskId, lease } = kept.report;
    if (refusal.code === 'lease_lost') {
      this.#acknowledge(kept, 'its lease was lost before its result');
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
  }

  #acknowledge({ report, bytes, heard }: Kept, trouble: string | null = null): void {
    if (trouble !== null) this.#options.log.warn({ task_id: report.taskId }, trouble);
    this.#unacknowledged.delete(report.lease);
    this.#unacknowledgedBytes -= bytes;
    this.#condition.changed();
    heard();
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
