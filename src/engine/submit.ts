import { createHash } from 'node:crypto';
import { allQueues } from '../domain/admission.js';
import { queueForbidden, reachesQueue } from '../domain/confinement.js';
import { SluiceError, type FieldError } from '../domain/errors.js';
import { IdSource, type TaskId } from '../domain/ids.js';
import { capabilitySet } from '../domain/lane.js';
import { costFaults } from '../domain/limit-faults.js';
import type { Priority } from '../domain/priority.js';
import { defaultQueue, type Cost } from '../domain/queue-settings.js';
import { scheduleFaults } from '../domain/schedule.js';
import { sortKeys } from '../domain/sort-keys.js';
import { traceIdFromText, traceToText } from '../domain/trace.js';
import type { Caller } from '../protocol/caller.js';
import type { TaskEvent } from '../protocol/events.js';
import {
  invalidRequest,
  refusalOf,
  type Refusal as LaneRefusal,
} from '../protocol/problem-wire.js';
import type { TaskDefaults } from '../protocol/task-types-api.js';
import type { Receipt, SubmitOutcome, TaskDraft } from '../protocol/tasks-api.js';
import type { Offer, Window } from '../ready/ready-queue.js';
import { Batcher, type BatcherOptions, type Settled } from '../runtime/batcher.js';
import { RandomNumbers } from '../runtime/random-numbers.js';
import { firstAttempt, type ClaimedRow, type KnownTask } from '../store/claim-tasks.js';
import { isDueAtOnce } from '../store/insert-due-tasks.js';
import type { Created, NewTask, Refused, Submitted } from '../store/new-task.js';
import { findByKey } from '../store/find-by-key.js';
import { submitTasks } from '../store/submit-tasks.js';
import type { Admission } from './admission.js';
import { noClaims, type EarlyClaims } from './arrivals.js';
import type { Claim } from './claim.js';
import {
  approximateNow,
  asRefusal,
  instant,
  judgeDatabaseFailure,
  tellAll,
  type EngineContext,
} from './context.js';
import { Estimate } from './estimate.js';
import type { Feeder } from './feeder.js';
import type { Lanes } from './lanes.js';
import type { QueueDirectory } from './queue-directory.js';
import type { RecentWork } from './recent-work.js';
import { SubmissionLimits, type OverLimit } from './submission-limits.js';
import { Refusals, type RefusalReason } from './refusals.js';
import type { TaskTypes } from './task-types.js';
import type { Counters } from './counters.js';

const defaultPriority = 'medium';
const maxTasksAtOnce = 1_000;
const maxBytesAtOnce = 8 * 1024 * 1024;
/** Postgres does one after the other, and has the next one when it is done with the last. */
const writesAtOnce = 2;
const worthOverlapping = 500;
/** A position beyond this is a lower bound. */
const countedPositions = 1_000;
const free: Cost = {};
const noRows: ReadonlyMap<TaskId, ClaimedRow> = new Map();

type Refusal = Extract<SubmitOutcome, { kind: 'refused' }>;

interface Prepared extends NewTask {
  readonly window: Window;
  readonly cost: Cost;
}

/** Where it goes. */
type Place = Pick<Prepared, 'queue' | 'priority'>;

/** Ready to be written, or not. */
type Judged = Prepared | Refusal;

/** What became of one task: one that failed sinks no other. */
type Answer = Settled<Submitted | OverLimit | NoLane>;

/** Its queue has as many lanes as it may have, and none for it. */
interface NoLane {
  readonly kind: 'no_lane';
  readonly refusal: LaneRefusal;
}

interface Made {
  readonly task: Prepared;
  readonly outcome: Created;
}

export interface SubmitParts {
  readonly admission: Admission;
  readonly feeder: Feeder;
  readonly recent: RecentWork;
  readonly claim: Claim;
  readonly queues: QueueDirectory;
  readonly counters: Counters;
  readonly lanes: Lanes;
  readonly types: TaskTypes;
  readonly isServing: () => boolean;
}

/** Accepts tasks: one write for many callers, then the offer, then the answer. */
export class Submit {
  readonly #context: EngineContext;
  readonly #parts: SubmitParts;
  readonly #estimate: Estimate;
  readonly #ids = new IdSource(new RandomNumbers());
  readonly #windows = new WindowCache();
  readonly #refusals = new Refusals();
  readonly #limits: SubmissionLimits;
  readonly #batcher: Batcher<Prepared, Submitted>;
  /** Members of workflows: a transaction each time. */
  readonly #members: Batcher<Prepared, Submitted>;
  /** Writes that are under way. */
  #writing = 0;
  /** Of the write that was alone last: until then it is not on its way, and others come after it. */
  #announced: Promise<EarlyClaims> = Promise.resolve(noClaims);

  constructor(context: EngineContext, parts: SubmitParts) {
    this.#context = context;
    this.#parts = parts;
    this.#estimate = new Estimate(context, parts.queues, parts.counters);
    this.#limits = new SubmissionLimits(context);
    const options: BatcherOptions<Prepared, Submitted> = {
      flush: (tasks) => this.#write(tasks),
      maxItems: maxTasksAtOnce,
      weigh: (task) => task.parametersJson.length,
      maxWeight: maxBytesAtOnce,
      judge: judgeDatabaseFailure,
    };
    const overlap = { concurrency: writesAtOnce, leastBesides: worthOverlapping };
    this.#batcher = new Batcher({ ...options, ...overlap });
    this.#members = new Batcher({ ...options, groupOf: ({ workflowId }) => workflowId });
  }

  async submit(draft: TaskDraft, caller: Caller): Promise<Receipt> {
    const outcome = await this.#submit(draft, caller);
    if (outcome.kind === 'refused') throw new SluiceError(outcome.code, outcome.detail, outcome);
    const { receipt } = outcome;
    if (receipt.status !== 'queued' && receipt.status !== 'pending') return receipt;
    const { taskId, queue } = receipt;
    const queuePosition = await this.#context.ready.position(taskId, countedPositions);
    const { cost = {} } = draft.cost === undefined ? this.#defaultsOf(draft, caller) : draft;
    const estimated = await this.#estimate.start(queue, queuePosition, cost);
    return { ...receipt, queuePosition, ...estimated };
  }

  async submitMany(drafts: readonly TaskDraft[], caller: Caller): Promise<SubmitOutcome[]> {
    const judged = drafts.map((draft) => this.#judge(draft, caller));
    const tasks = judged.filter(isPrepared);
    const settled = await this.#pass(tasks, caller);
    throwWhatSinksAll(settled);
    const answers = settled.values();
    return judged.map((one) =>
      isPrepared(one) ? this.#toOutcome(one, answers.next().value) : one,
    );
  }

  async #submit(draft: TaskDraft, caller: Caller): Promise<SubmitOutcome> {
    const [outcome] = await this.submitMany([draft], caller);
    if (outcome === undefined) throw new Error('a submit was not answered');
    return outcome;
  }

  /** What can be said without a look at Postgres: refused, or ready to be written. */
  #judge(draft: TaskDraft, caller: Caller): Judged {
    const faults = this.#faultsOf(draft);
    if (faults.length > 0) return { kind: 'refused', ...refusalOf(invalidRequest(faults)) };
    const defaults = this.#defaultsOf(draft, caller);
    const place = {
      queue: draft.queue ?? defaults.queue ?? defaultQueue,
      priority: draft.priority ?? defaults.priority ?? defaultPriority,
    };
    // Here and not where the call came in: only here it is decided which queue it is.
    if (!reachesQueue(caller.confinement, place.queue)) {
      return { kind: 'refused', ...refusalOf(queueForbidden(caller.confinement, place.queue)) };
    }
    return this.#findReached(draft, place, caller) ?? this.#prepare(draft, place, defaults, caller);
  }

  #defaultsOf(draft: TaskDraft, { confinement }: Caller): TaskDefaults {
    return this.#parts.types.defaultsOf(draft, confinement);
  }

  /** For each, in order: null, or why it enters no lane. A repeat is answered nevertheless. */
  async #enterLanes(tasks: readonly Prepared[]): Promise<(NoLane | null)[]> {
    const refusals = await this.#parts.lanes.enter(tasks);
    const refused = tasks.filter((_, index) => refusals[index] !== null);
    const keyed = refused.filter(({ idempotency }) => idempotency !== null);
    const known =
      keyed.length === 0 ? null : await findByKey(this.#context.db, keyed, instant(this.#context));
    return tasks.map(({ taskId }, index) => {
      const refusal = refusals[index] ?? null;
      return refusal === null || known?.has(taskId) === true ? null : { kind: 'no_lane', refusal };
    });
  }

  #faultsOf(draft: TaskDraft): FieldError[] {
    const costly = draft.cost === undefined ? [] : costFaults(draft.cost);
    if (draft.runAt === undefined && draft.delaySeconds === undefined) return costly;
    const nowMs = approximateNow(this.#context).getTime();
    return [...costly, ...scheduleFaults(draft, nowMs, this.#context.settings.maxScheduleDays)];
  }

  async #pass(tasks: readonly Prepared[], caller: Caller): Promise<readonly Answer[]> {
    if (this.#limits.areOff) return this.#accept(tasks);
    return this.#limits.pass(tasks, caller, (passed) => this.#accept(passed));
  }

  /** A lane is entered for what no limit refuses. Rejects when the lanes could not be entered. */
  async #accept(tasks: readonly Prepared[]): Promise<readonly Settled<Submitted | NoLane>[]> {
    if (this.#parts.lanes.areKnown(tasks)) return this.#acceptInLanes(tasks);
    const refusals = await this.#enterLanes(tasks);
    const entered = tasks.filter((_, index) => refusals[index] === null);
    const answers = (await this.#acceptInLanes(entered)).values();
    return refusals.flatMap((refusal): Settled<Submitted | NoLane>[] => {
      if (refusal !== null) return [{ kind: 'done', outcome: refusal }];
      const { value } = answers.next();
      return value === undefined ? [] : [value];
    });
  }

  async #acceptInLanes(tasks: readonly Prepared[]): Promise<readonly Settled<Submitted>[]> {
    const members = tasks.filter(isMember);
    if (members.length === 0) return this.#batcher.settleAll(tasks);
    const others = tasks.filter((task) => !isMember(task));
    const answers = await Promise.all([
      this.#batcher.settleAll(others),
      this.#members.settleAll(members),
    ]);
    const asked = [...others, ...members];
    const answerOf = new Map(answers.flat().map((answer, n) => [asked[n], answer]));
    return tasks.flatMap((task) => answerOf.get(task) ?? []);
  }

  /** Not for those who pass ceilings, nor for what may be a repeat, which is answered. */
  #findReached(draft: TaskDraft, place: Place, { passesCeilings }: Caller): Refusal | null {
    if (passesCeilings || draft.idempotencyKey !== undefined) return null;
    const refused = this.#parts.admission.reached.find(place.queue, place.priority);
    return refused === null ? null : this.#refuse(place, refused);
  }

  #refuse(place: Place, refused: Refused): Refusal {
    const { queue, priority } = place;
    const isOfAll = refused.reached.scope === allQueues;
    this.#noteRefusal(isOfAll ? 'max_active' : 'queue_max_active', place);
    return { kind: 'refused', ...this.#parts.admission.refusal(queue, priority, refused) };
  }

  #noteRefusal(reason: RefusalReason, { queue, priority }: Place): void {
    this.#refusals.note(reason);
    this.#parts.counters.add('refused', 1, queue);
    const fields = { queue, priority, reason };
    this.#context.transitions?.event('submit refused', `${queue} ${reason}`, fields);
  }

  /** A request that was refused before it was read: nobody knows for which queue. */
  noteShed(): void {
    this.#refusals.note('overload');
    this.#parts.counters.add('refused', 1);
    this.#context.transitions?.event('submit refused', 'overload', { reason: 'overload' });
  }

  #toOutcome(task: Prepared, answer: Answer | undefined): SubmitOutcome {
    if (answer === undefined) throw new Error('a submit was not answered');
    if (answer.kind === 'failed') return this.#sunk(answer.error);
    const submitted = answer.outcome;
    if (submitted.kind === 'over_limit') {
      this.#noteRefusal('submission_limit', task);
      return { ...submitted, kind: 'refused', code: 'refused' };
    }
    if (submitted.kind === 'no_lane') {
      this.#noteRefusal('queue_max_lanes', task);
      return { ...submitted.refusal, kind: 'refused' };
    }
    if (submitted.kind === 'conflict') {
      this.#parts.counters.add('idempotency_conflict', 1, task.queue);
    }
    if (submitted.kind !== 'refused') return toOutcome(task, submitted);
    this.#parts.admission.reached.note(task.priority, submitted);
    return this.#refuse(task, submitted);
  }

  /** Its row is held by somebody else, or Postgres will not have it: the others were written. */
  #sunk(error: unknown): Refusal {
    const refusal = asRefusal(error);
    if (refusal instanceof SluiceError) return { kind: 'refused', ...refusalOf(refusal) };
    this.#context.log.error({ err: error }, 'a task could not be written');
    return { kind: 'refused', code: 'internal', detail: 'The task could not be written' };
  }

  /** How many were refused since this process began, by reason. */
  refused(): Readonly<Record<string, number>> {
    return this.#refusals.counts();
  }

  /** What the submit says comes before what its type says, and that before what holds for any task. */
  #prepare(
    draft: TaskDraft,
    { queue, priority }: Place,
    defaults: TaskDefaults,
    { owner, passesCeilings, confinement }: Caller,
  ): Prepared {
    const capabilities = capabilitySet(draft.requiredCapabilities ?? defaults.capabilities ?? []);
    const cost = draft.cost ?? defaults.cost;
    const { tasks } = this.#context.settings;
    return {
      taskId: this.#ids.nextTaskId(this.#context.db.nowMs()),
      queue,
      taskType: draft.taskType,
      capabilities,
      priority,
      parametersJson: JSON.stringify(draft.parameters ?? {}),
      timeoutSeconds:
        draft.timeoutSeconds ?? defaults.timeoutSeconds ?? tasks.timeoutSeconds[priority],
      maxRetries: draft.maxRetries ?? defaults.maxRetries ?? tasks.maxRetries[priority],
      runAt: draft.runAt ?? null,
      delaySeconds: draft.delaySeconds ?? null,
      // Null is an answer too: it waits for ever, whatever the setting says.
      dispatchDeadlineSeconds:
        draft.dispatchDeadlineSeconds === undefined
          ? tasks.dispatchDeadlineSeconds
          : draft.dispatchDeadlineSeconds,
      workflowId: draft.workflowId ?? null,
      haltsWorkflow: draft.workflowOnFailure !== 'continue',
      idempotency:
        draft.idempotencyKey === undefined
          ? null
          : { scope: owner, key: draft.idempotencyKey, fingerprint: fingerprint(draft) },
      cost: cost === undefined ? free : { ...cost },
      costJson: cost === undefined ? null : JSON.stringify(cost),
      userId: draft.userId ?? null,
      tags: draft.tags ?? [],
      trace: traceToText(draft),
      owner: confinement.owner,
      // A replica's offers go to the leader, also those of a process that only submits.
      isOffered: this.#context.mode === 'replicas' || this.#parts.isServing(),
      passesCeilings,
      claim: null,
      window: this.#windows.get(queue, draft.taskType, capabilities, priority),
    };
  }

  async #write(tasks: readonly Prepared[]): Promise<Submitted[]> {
    // What is being written already comes first, and is not in line yet.
    const isAlone = this.#writing === 0;
    let early = noClaims;
    this.#writing += 1;
    try {
      if (isAlone) early = await (this.#announced = this.#announce(tasks));
      else await this.#announced;
      const submitted = await submitTasks(
        this.#context.db,
        early.size === 0 ? tasks : tasks.map((task) => withClaim(task, early)),
        instant(this.#context),
        this.#parts.admission.ceilings(),
      );
      await this.#tell(tasks, submitted, early);
      return submitted;
    } catch (error) {
      await this.#parts.claim.settleEarly(early, noRows);
      throw error;
    } finally {
      this.#writing -= 1;
    }
  }

  async #announce(tasks: readonly Prepared[]): Promise<EarlyClaims> {
    return tasks.every(isDueAtOnce) ? this.#parts.claim.announce(tasks) : noClaims;
  }

  /** After the commit: whoever listens, the workers that have some already, the ready queue, the feeder. */
  async #tell(
    tasks: readonly Prepared[],
    submitted: readonly Submitted[],
    early: EarlyClaims,
  ): Promise<void> {
    const made: Made[] = [];
    const offers: Offer[] = [];
    const claimed = new Map<TaskId, ClaimedRow>();
    const isBehind = ofLatest((window: Window) => this.#parts.feeder.isBehind(window));
    for (const [index, task] of tasks.entries()) {
      const outcome = submitted[index];
      if (outcome?.kind !== 'created') continue;
      made.push({ task, outcome });
      if (outcome.waitsFor === 'time') {
        this.#parts.feeder.noteDue(outcome.eligibleAtMs - outcome.createdAt.getTime());
      }
      if (outcome.status !== 'queued') continue;
      const claim = outcome.isClaimed ? early.get(task.taskId) : undefined;
      if (claim !== undefined) {
        const known = toKnownTask(task, outcome);
        const lapsesAfterMs = claim.start ? undefined : claim.unstartedMs;
        const row = firstAttempt(claim, known, outcome.eligibleAtMs, lapsesAfterMs);
        claimed.set(task.taskId, row);
        continue;
      }
      // What is left in line is fed with what it is.
      if (task.runAt === null && task.delaySeconds === null && !isBehind(task.window)) {
        this.#parts.recent.noteTask(task.taskId, toKnownTask(task, outcome));
      }
      offers.push(toOffer(task, outcome));
    }
    tellAll(this.#context, made, toNewEvent);
    // What was refused is given back before it is offered, and nothing that is written later is before it.
    await Promise.all([this.#parts.claim.settleEarly(early, claimed), this.#offer(offers)]);
    this.#parts.queues.ensureLater(new Set(made.map(({ task }) => task.queue)));
  }

  async #offer(offers: readonly Offer[]): Promise<void> {
    if (offers.length === 0) return;
    const { feeder, recent } = this.#parts;
    const answer = await this.#context.ready.offer(offers);
    if (answer.kind === 'rebuild') {
      feeder.noteUnoffered(offers);
      return;
    }
    const left = offers.filter((_, index) => answer.outcomes[index] === 'left');
    for (const { taskId } of left) recent.forgetTask(taskId);
    feeder.noteLeft(left);
  }
}

function isPrepared(one: Judged): one is Prepared {
  return !('kind' in one);
}

/** The same object for tasks of one window that come one after the other: most of a batch. */
class WindowCache {
  #latest: Window | null = null;

  get(
    queue: string,
    taskType: string,
    capabilities: readonly string[],
    priority: Priority,
  ): Window {
    const latest = this.#latest;
    if (
      latest?.priority === priority &&
      latest.lane.queue === queue &&
      latest.lane.taskType === taskType &&
      latest.lane.capabilities === capabilities
    ) {
      return latest;
    }
    return (this.#latest = { lane: { queue, taskType, capabilities }, priority });
  }
}

/** When Postgres was away nobody knows what was written. Where all failed, the first says why. */
function throwWhatSinksAll(answers: readonly Answer[]): void {
  const failed = answers.filter((answer) => answer.kind === 'failed');
  const first = failed.find(({ error }) => judgeDatabaseFailure(error) === 'outage') ?? failed[0];
  if (first === undefined) return;
  const isOutage = judgeDatabaseFailure(first.error) === 'outage';
  if (isOutage || failed.length === answers.length) throw asRefusal(first.error);
}

/** Asked once for as many as are the same in a row. */
function ofLatest<Key, Value>(ask: (key: Key) => Value): (key: Key) => Value {
  let latest: { readonly key: Key; readonly value: Value } | null = null;
  return (key) => {
    if (latest?.key !== key) latest = { key, value: ask(key) };
    return latest.value;
  };
}

function isMember({ workflowId }: Prepared): boolean {
  return workflowId !== null;
}

function toNewEvent({ task, outcome }: Made, at: Date): TaskEvent {
  const { queue, taskType, priority, trace } = task;
  const { taskId, status: to } = outcome;
  return { taskId, queue, taskType, priority, trace, from: 'new', to, attempt: 0, at };
}

function toOffer(task: Prepared, outcome: Created): Offer {
  return {
    lane: task.window.lane,
    priority: task.priority,
    taskId: outcome.taskId,
    ageMs: 0,
    eligibleAtMs: outcome.eligibleAtMs,
    seq: outcome.seq,
    cost: task.cost,
  };
}

function withClaim(task: Prepared, early: EarlyClaims): NewTask {
  const claim = early.get(task.taskId);
  return claim === undefined ? task : { ...task, claim };
}

function toKnownTask(task: Prepared, { eligibleAtMs }: Created): KnownTask {
  const { queue, taskType, priority, parametersJson, timeoutSeconds, trace, cost } = task;
  return {
    queue,
    taskType,
    priority,
    parametersJson,
    timeoutSeconds,
    trace,
    cost,
    eligibleAtMs,
  };
}

function toOutcome(task: Prepared, submitted: Exclude<Submitted, Refused>): SubmitOutcome {
  if (submitted.kind === 'conflict') {
    return {
      kind: 'refused',
      code: 'idempotency_conflict',
      detail:
        `The idempotency key was used for task ${submitted.taskId} with another task type, ` +
        'queue or parameters. Use a new key for a new task.',
    };
  }
  const { taskId, status, createdAt } = submitted;
  const { queue, priority, trace } = submitted.kind === 'created' ? task : submitted;
  return {
    kind: 'accepted',
    receipt: {
      taskId,
      status,
      queue,
      priority,
      queuePosition: null,
      estimatedWaitSeconds: null,
      estimatedStartTime: null,
      traceId: traceIdFromText(trace, taskId),
      createdAt,
      created: submitted.kind === 'created',
    },
  };
}

/**
 * Equal for equal task type, queue and parameters, whatever the order of the keys. The queue as the submit names it:
 * a repeat is the same task when its type was defined anew meanwhile.
 */
function fingerprint(draft: TaskDraft): Buffer {
  const subject = [draft.taskType, draft.queue ?? defaultQueue, sortKeys(draft.parameters ?? {})];
  return createHash('sha256').update(JSON.stringify(subject)).digest();
}
