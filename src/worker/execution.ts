import type { StandardSchemaV1 } from '@standard-schema/spec';
import { attemptErrorCodes, type AttemptError } from '../domain/attempt-error.js';
import type { FieldError } from '../domain/errors.js';
import type { JsonValue } from '../domain/json.js';
import { bounds } from '../protocol/bounds.js';
import { findJsonFault, type JsonFault } from '../protocol/json-measure.js';
import type { ClaimedTask } from '../protocol/workers-api.js';
import { applyRetryPolicy } from './apply-retry-policy.js';
import {
  cut,
  keepableDetails,
  readThrown,
  TaskAbortedError,
  toAttemptError,
  unnamed,
  type AbortCause,
  type Thrown,
} from './errors.js';
import type { HandlerContext, TaskHandler } from './handler.js';
import { checkInput, summary } from './input-schema.js';
import { withStack } from './stack.js';
import type { Stop } from './stop.js';
import { toJson, TooLargeError } from './to-json.js';

export type Outcome =
  | { readonly kind: 'completed'; readonly result: JsonValue }
  | { readonly kind: 'failed'; readonly error: AttemptError }
  /** There is nothing to report. */
  | { readonly kind: 'abandoned'; readonly why: Exclude<AbortCause, 'timeout'> };

export interface Assignment {
  readonly task: ClaimedTask;
  readonly handler: TaskHandler;
  readonly context: HandlerContext;
  readonly stop: Stop;
}

/** What goes through the pipe. A step that meets a failure hands it on untouched. */
interface Attempt {
  readonly assignment: Assignment;
  /** The parameters, then what the schema made of them, then what the handler returned. */
  readonly value: unknown;
  readonly failure: Thrown | null;
}

/** One attempt, from its parameters to what is reported. Neither throws nor rejects. */
export function execute(assignment: Assignment): Outcome | Promise<Outcome> {
  try {
    const ended = attemptIt(assignment);
    return ended instanceof Promise ? ended.then(toOutcome).catch(unreadable) : toOutcome(ended);
  } catch {
    return unreadable();
  }
}

function attemptIt(assignment: Assignment): Attempt | Promise<Attempt> {
  const begunAtMs = performance.now();
  const begun = reached(assignment, assignment.task.parameters);
  const schema = assignment.handler.input;
  const work = schema === undefined ? run(begun) : validate(begun, schema).then(run);
  // What ended at once needs no timer.
  return work instanceof Promise ? withinTimeout(begun, begunAtMs, work) : work;
}

function toOutcome(ended: Attempt): Outcome {
  return conclude(normalise(ended));
}

/** Only of what is made to be hostile: a proxy that throws when it is looked at. */
function unreadable(): Outcome {
  const message = 'What the handler did can not be read';
  return { kind: 'failed', error: { code: 'ERROR', message, retriable: true } };
}

/** Ends the attempt even if the handler ignores its signal; what it does later changes nothing. */
async function withinTimeout(
  attempt: Attempt,
  begunAtMs: number,
  work: Promise<Attempt>,
): Promise<Attempt> {
  const { task, stop } = attempt.assignment;
  const { timeoutSeconds } = task;
  let timer: NodeJS.Timeout | undefined;
  // Its handler has run already, up to where it waits for something.
  const leftMs = timeoutMs(timeoutSeconds) - (performance.now() - begunAtMs);
  const timedOut = new Promise<Attempt>((resolve) => {
    timer = setTimeout(() => {
      stop.abort(new TaskAbortedError('timeout'));
      resolve(
        failed(attempt, {
          code: attemptErrorCodes.timeout,
          message: `The attempt took longer than its ${timeoutSeconds} s`,
          retriable: true,
        }),
      );
    }, leftMs);
  });
  try {
    return await Promise.race([work, timedOut]);
  } finally {
    clearTimeout(timer);
  }
}

async function validate(attempt: Attempt, schema: StandardSchemaV1): Promise<Attempt> {
  try {
    const checked = await checkInput(schema, attempt.value);
    return checked.kind === 'valid'
      ? reached(attempt.assignment, checked.value)
      : failed(attempt, invalidInput(checked.errors));
  } catch (thrown) {
    return threwThis(attempt, thrown);
  }
}

function run(attempt: Attempt): Attempt | Promise<Attempt> {
  if (attempt.failure !== null) return attempt;
  try {
    const { handler, context, stop } = attempt.assignment;
    if (stop.reason !== null) throw stop.reason;
    const value = handler.run(attempt.value, context);
    return isThenable(value) ? settle(attempt, value) : reached(attempt.assignment, value);
  } catch (thrown) {
    return threw(attempt, thrown);
  }
}

async function settle(attempt: Attempt, answer: PromiseLike<unknown>): Promise<Attempt> {
  try {
    return reached(attempt.assignment, await answer);
  } catch (thrown) {
    return threw(attempt, thrown);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  const mayBe = (typeof value === 'object' && value !== null) || typeof value === 'function';
  return mayBe && 'then' in value && typeof value.then === 'function';
}

function threw(attempt: Attempt, thrown: unknown): Attempt {
  logThrown(attempt, thrown);
  return threwThis(attempt, thrown);
}

function threwThis({ assignment, value }: Attempt, thrown: unknown): Attempt {
  const failure = readThrown(thrown);
  return { assignment, value, failure: { ...failure, error: withStack(failure.error, thrown) } };
}

/** Reading what was thrown may throw: a log line is not worth an attempt. */
function logThrown({ assignment: { context } }: Attempt, thrown: unknown): void {
  try {
    context.log.debug({ err: thrown }, 'the handler threw');
  } catch {
    context.log.debug('the handler threw what can not be read');
  }
}

function normalise(attempt: Attempt): Attempt {
  if (attempt.failure !== null) return attempt;
  try {
    const value = toJson(attempt.value, bounds.resultBytes);
    const fault = findJsonFault(value, bounds.resultBytes);
    return fault === null ? reached(attempt.assignment, value) : failed(attempt, unkeepable(fault));
  } catch (thrown) {
    if (thrown instanceof TooLargeError) return failed(attempt, unkeepable('too_large'));
    return failed(attempt, notKept('RESULT_NOT_JSON', toAttemptError(thrown).message));
  }
}

function unkeepable(fault: JsonFault): AttemptError {
  return fault === 'too_large'
    ? notKept(attemptErrorCodes.resultTooLarge, `it takes more than ${bounds.resultBytes} bytes`)
    : notKept('RESULT_NOT_JSON', `it is nested deeper than ${bounds.jsonDepth} levels`);
}

function notKept(code: string, why: string): AttemptError {
  return { code, message: `The handler's result can't be kept: ${why}`, retriable: false };
}

function conclude(attempt: Attempt): Outcome {
  const why = attempt.assignment.stop.reason?.why ?? null;
  if (why === 'cancelled' || why === 'lease_lost') return { kind: 'abandoned', why };
  if (attempt.failure === null) return { kind: 'completed', result: attempt.value as JsonValue };
  // What a handler throws when it is told to stop for a drain is no failure of the task.
  if (why === 'drain') return { kind: 'abandoned', why };
  return { kind: 'failed', error: byPolicy(attempt, attempt.failure) };
}

function byPolicy({ assignment }: Attempt, { error, ...told }: Thrown): AttemptError {
  const { handler, task, context } = assignment;
  if (handler.retry === undefined) return error;
  const { retryCount } = task;
  return applyRetryPolicy(handler.retry, error, { retryCount, log: context.log, ...told });
}

function reached(assignment: Assignment, value: unknown): Attempt {
  return { assignment, value, failure: null };
}

function failed({ assignment, value }: Attempt, error: AttemptError): Attempt {
  return { assignment, value, failure: unnamed(error) };
}

function invalidInput(errors: readonly FieldError[]): AttemptError {
  return {
    code: attemptErrorCodes.invalidInput,
    message: cut(`The parameters don't fit the schema: ${summary(errors)}`),
    retriable: false,
    ...keepableDetails(errors),
  };
}

// Node takes a longer delay for 1 ms.
const maxTimerMs = 2 ** 31 - 1;

function timeoutMs(timeoutSeconds: number): number {
  return Math.min(timeoutSeconds * 1000, maxTimerMs);
}
