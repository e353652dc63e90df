import { SluiceError } from '../domain/errors.js';
import type { TaskId } from '../domain/ids.js';
import type { ClientApi } from '../protocol/api.js';
import { bounds } from '../protocol/bounds.js';
import { callersRefusal } from '../protocol/fields.js';
import { checkNames } from '../protocol/options.js';
import { errorOf } from '../protocol/problem-wire.js';
import type { QueueChange, QueueDraft, QueueView } from '../protocol/queues-api.js';
import type { SubmitOutcome, TaskDraft } from '../protocol/tasks-api.js';
import { Batcher } from '../runtime/batcher.js';
import { jsonWeight } from '../worker/json-weight.js';
import type { TaskDefinition } from './define-task.js';
import { drafting, optionFields, type SubmitOptions } from './draft.js';
import { TaskHandle } from './task-handle.js';
import type { Tracing } from './tracing.js';
import { untilClosed } from './until-closed.js';

export interface Submission<Input> {
  readonly input: Input;
  readonly options?: SubmitOptions;
}

export type SubmittedTask<Result> =
  | { readonly kind: 'accepted'; readonly handle: TaskHandle<Result> }
  | { readonly kind: 'refused'; readonly error: SluiceError };

export interface QueueControl {
  pause(until?: Date): Promise<QueueView>;
  resume(): Promise<QueueView>;
  /** Replaces the whole configuration; what is absent gets its default. */
  set(draft: QueueDraft): Promise<QueueView>;
  /** Changes what is named, and keeps the rest. */
  change(change: QueueChange): Promise<QueueView>;
  get(): Promise<QueueView>;
}

const submissionNames: Readonly<Record<keyof Submission<unknown>, true>> = {
  input: true,
  options: true,
};

/** How many tasks go in one call, and how many calls are under way at once. */
interface Pace {
  readonly size: number;
  readonly calls: number;
  /** Whether tasks that are submitted one by one go together. */
  readonly gathers: boolean;
}

/** Far away, calls that are made together need not arrive in order, and each of them costs a request. */
const oneByOne: Pace = { size: bounds.batchSize, calls: 1, gathers: true };

/** Where they do, the next ones are made while the last one is written; the engine gathers. */
export const overlapping: Pace = { size: 1_000, calls: 3, gathers: false };

/** So many requests with what was gathered are under way at once: one that is slow holds up nobody else. */
const gatheredCalls = 4;
const maxGathered = 200;
/** What each of them could send alone, all of them must be able to send: proxies allow a megabyte by default. */
const maxGatheredBytes = 256 * 1024;

/** Submits, reads and steers; the same whether Sluice is embedded or far away. Needs nothing of Node. */
export class SluiceClient<Api extends ClientApi = ClientApi> implements AsyncDisposable {
  /** Every call there is, untyped by task definitions. */
  readonly api: Api;
  /** What makes spans of its submits and of the workers made here: `instrument` of `sluice/otel` sets it. */
  tracing: Tracing | null = null;
  readonly #closeApi: () => Promise<void>;
  readonly #pace: Pace;
  readonly #gathered: Batcher<TaskDraft, SubmitOutcome | undefined>;
  /** Of workers made here: reports that come while it closes still arrive. */
  protected readonly workersApi: Api;
  #closing: Promise<void> | null = null;
  #isClosed = false;

  constructor(api: Api, closeApi: () => Promise<void>, pace: Pace = oneByOne) {
    this.api = untilClosed(api, () => this.#isClosed);
    this.workersApi = api;
    this.#closeApi = closeApi;
    this.#pace = pace;
    this.#gathered = new Batcher({
      flush: (drafts) => this.api.submitMany(drafts),
      maxItems: maxGathered,
      weigh: ({ parameters }) => jsonWeight(parameters),
      maxWeight: maxGatheredBytes,
      concurrency: gatheredCalls,
      // Whether some of them were accepted is not known: none is sent again.
      judge: () => 'outage',
    });
  }

  async submit<Input extends object, Result>(
    definition: TaskDefinition<Input, Result>,
    input: Input,
    options?: SubmitOptions,
  ): Promise<TaskHandle<Result>> {
    const draft = await drafting(definition)(input, options);
    const [outcome] = await this.#send([draft], this.#pace.gathers);
    const submitted = this.#submitted<Result>(outcome);
    if (submitted.kind === 'refused') throw submitted.error;
    return submitted.handle;
  }

  /**
   * Answers in order; one that is refused does not sink the rest. Any number of them. When it rejects,
   * as when Postgres is away, some of them may have been accepted: idempotency keys tell which.
   */
  async submitMany<Input extends object, Result>(
    definition: TaskDefinition<Input, Result>,
    submissions: readonly Submission<Input>[],
  ): Promise<SubmittedTask<Result>[]> {
    const { size, calls } = this.#pace;
    const draft = drafting(definition);
    const underWay: Promise<SubmittedTask<Result>[]>[] = [];
    const failures: unknown[] = [];
    const noteFailure = (error: unknown) => failures.push(error);
    for (let from = 0; from < submissions.length; from += size) {
      const drafts = await draftAll(draft, submissions.slice(from, from + size));
      await underWay.at(-calls)?.catch(noteFailure);
      // What was sent already is waited for below.
      if (failures.length > 0) break;
      const call = this.#submitDrafts<Result>(drafts);
      call.catch(noteFailure);
      underWay.push(call);
    }
    await Promise.allSettled(underWay);
    return (await Promise.all(underWay)).flat();
  }

  /** A handle for a task submitted elsewhere. */
  task<Result = unknown>(id: string): TaskHandle<Result> {
    return new TaskHandle(id as TaskId, this.api);
  }

  queue(name: string): QueueControl {
    return {
      pause: (until) => this.api.pauseQueue(name, until),
      resume: () => this.api.resumeQueue(name),
      set: (draft) => this.api.putQueue(name, draft),
      change: (change) => this.api.changeQueue(name, change),
      get: () => this.api.getQueue(name),
    };
  }

  /** Lets go of everything. May be called twice. */
  close(): Promise<void> {
    this.#closing ??= this.letGo();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  protected get isClosed(): boolean {
    return this.#isClosed;
  }

  protected async letGo(): Promise<void> {
    this.#isClosed = true;
    await this.#closeApi();
  }

  /** Also one alone not by the call for one, which also finds out its position. */
  #send(
    drafts: readonly TaskDraft[],
    gathers: boolean,
  ): Promise<readonly (SubmitOutcome | undefined)[]> {
    const send = (ready: readonly TaskDraft[]) =>
      gathers
        ? Promise.all(ready.map((draft) => this.#gathered.add(draft)))
        : this.api.submitMany(ready);
    return this.tracing?.submit(drafts, send) ?? send(drafts);
  }

  async #submitDrafts<Result>(
    drafts: readonly (TaskDraft | SluiceError)[],
  ): Promise<SubmittedTask<Result>[]> {
    const valid = drafts.filter((draft): draft is TaskDraft => !(draft instanceof SluiceError));
    const outcomes = (valid.length === 0 ? [] : await this.#send(valid, false)).values();
    return drafts.map((draft) =>
      draft instanceof SluiceError
        ? { kind: 'refused', error: draft }
        : this.#submitted<Result>(outcomes.next().value),
    );
  }

  #submitted<Result>(outcome: SubmitOutcome | undefined): SubmittedTask<Result> {
    if (outcome === undefined) throw new Error('Fewer answers than submitted tasks');
    if (outcome.kind === 'accepted') {
      const { receipt } = outcome;
      const handle = new TaskHandle<Result>(receipt.taskId, this.api, receipt);
      return { kind: 'accepted', handle };
    }
    return { kind: 'refused', error: errorOf(callersRefusal(optionFields, outcome)) };
  }
}

/** In order; one that is refused does not sink the rest. */
function draftAll<Input>(
  draft: (input: Input, options?: SubmitOptions) => Promise<TaskDraft> | TaskDraft,
  submissions: readonly Submission<Input>[],
): Promise<(TaskDraft | SluiceError)[]> {
  return Promise.all(
    submissions.map(async (submission) => {
      try {
        checkNames(submissionNames, submission);
        return await draft(submission.input, submission.options);
      } catch (error) {
        return refusalOrThrow(error);
      }
    }),
  );
}

function refusalOrThrow(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error;
  throw error;
}
