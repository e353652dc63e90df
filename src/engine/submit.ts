import { createHash } from 'node:crypto';
import { SluiceError } from '../domain/errors.js';
import { TaskIdSource } from '../domain/ids.js';
import type { JsonValue } from '../domain/json.js';
import { capabilitySet, type Lane } from '../domain/lane.js';
import { defaultMaxRetries, defaultTimeoutSeconds } from '../domain/retry-policy.js';
import type { Receipt, SubmitOutcome, TaskDraft } from '../protocol/api.js';
import { Batcher } from '../runtime/batcher.js';
import { submitTasks, type NewTask, type Submitted } from '../store/submit-tasks.js';
import { asRefusal, instant, judgeDatabaseFailure, tell, type EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import type { QueueDirectory } from './queue-directory.js';
import type { Throughput } from './throughput.js';
import { WindowMap, type Places } from './windows.js';

const maxTasksAtOnce = 1_000;
const maxBytesAtOnce = 8 * 1024 * 1024;
/** A position beyond this is a lower bound. */
const countedPositions = 1_000;

type Prepared = Omit<NewTask, 'hasRoom'>;

export interface SubmitParts {
  readonly feeder: Feeder;
  readonly queues: QueueDirectory;
  readonly places: Places;
  readonly throughput: Throughput;
  readonly isServing: () => boolean;
}

/** Accepts tasks: one write for many callers, then the offer, then the answer. */
export class Submit {
  readonly #context: EngineContext;
  readonly #parts: SubmitParts;
  readonly #ids = new TaskIdSource();
  readonly #batcher: Batcher<Prepared, Submitted>;

  constructor(context: EngineContext, parts: SubmitParts) {
    this.#context = context;
    this.#parts = parts;
    this.#batcher = new Batcher({
      flush: (tasks) => this.#write(tasks),
      maxItems: maxTasksAtOnce,
      weigh: (task) => task.parametersJson.length,
      maxWeight: maxBytesAtOnce,
      judge: judgeDatabaseFailure,
    });
  }

  async submit(draft: TaskDraft): Promise<Receipt> {
    const outcome = await this.#submit(draft);
    if (outcome.kind === 'refused') throw new SluiceError(outcome.code, outcome.detail);
    const { receipt } = outcome;
    if (receipt.status !== 'queued' && receipt.status !== 'pending') return receipt;
    const { taskId, queue } = receipt;
    const queuePosition = await this.#context.ready.position(taskId, countedPositions);
    return { ...receipt, queuePosition, ...this.#estimate(queue, queuePosition) };
  }

  /** From how fast its queue moved lately; unknown when it did not. */
  #estimate(queue: string, position: number | null): Pick<Receipt, 'estimatedWaitSeconds'> {
    const { started } = this.#parts.throughput.lastMinute(this.#context.db.nowMs(), queue);
    const isKnown = position !== null && started > 0;
    return { estimatedWaitSeconds: isKnown ? (position * 60) / started : null };
  }

  submitMany(drafts: readonly TaskDraft[]): Promise<SubmitOutcome[]> {
    return Promise.all(drafts.map((draft) => this.#submit(draft)));
  }

  async #submit(draft: TaskDraft): Promise<SubmitOutcome> {
    const task = this.#prepare(draft);
    const submitted = await this.#batcher.add(task).catch((error: unknown) => {
      throw asRefusal(error);
    });
    return toOutcome(task, submitted);
  }

  #prepare(draft: TaskDraft): Prepared {
    const priority = draft.priority ?? 'medium';
    const queue = draft.queue ?? 'default';
    const parametersJson = JSON.stringify(draft.parameters ?? {});
    return {
      taskId: this.#ids.next(this.#context.db.nowMs()),
      queue,
      taskType: draft.taskType,
      capabilities: capabilitySet(draft.requiredCapabilities ?? []),
      priority,
      parametersJson,
      timeoutSeconds: draft.timeoutSeconds ?? defaultTimeoutSeconds[priority],
      maxRetries: draft.maxRetries ?? defaultMaxRetries[priority],
      runAt: draft.runAt ?? null,
      delaySeconds: draft.delaySeconds ?? null,
      dispatchDeadlineSeconds: draft.dispatchDeadlineSeconds ?? null,
      workflowId: draft.workflowId ?? null,
      haltsWorkflow: draft.workflowOnFailure !== 'continue',
      idempotency:
        draft.idempotencyKey === undefined
          ? null
          : { scope: '', key: draft.idempotencyKey, fingerprint: fingerprint(draft, queue) },
      costJson: draft.cost === undefined ? null : JSON.stringify(draft.cost),
      userId: draft.userId ?? null,
      tags: draft.tags ?? [],
      traceId: draft.traceId ?? null,
    };
  }

  async #write(tasks: readonly Prepared[]): Promise<Submitted[]> {
    const reserved = await this.#parts.places.reserve(this.#wantedPlaces(tasks));
    try {
      const left = new WindowMap<number>();
      for (const [window, count] of reserved.entries()) left.set(window, count);
      const placed = tasks.map((task) => ({ ...task, hasRoom: takePlace(left, task) }));
      const submitted = await submitTasks(this.#context.db, placed, instant(this.#context));
      await this.#offer(tasks, submitted);
      return submitted;
    } finally {
      this.#parts.places.giveBack(reserved);
    }
  }

  /**
   * Work goes straight to the ready queue unless older work of its window waits in Postgres, or
   * another process serves: its feeder finds what is pending sooner than its sweeper what is queued.
   */
  #wantedPlaces(tasks: readonly Prepared[]): WindowMap<number> {
    const wanted = new WindowMap<number>();
    if (!this.#parts.isServing()) return wanted;
    for (const task of tasks) {
      const window = windowOf(task);
      if (!this.#parts.feeder.hasBacklog(window)) wanted.set(window, (wanted.get(window) ?? 0) + 1);
    }
    return wanted;
  }

  async #offer(tasks: readonly Prepared[], submitted: readonly Submitted[]): Promise<void> {
    const created = tasks.flatMap((task, index) => {
      const outcome = submitted[index];
      return outcome?.kind === 'created' ? [{ task, outcome }] : [];
    });
    const offers = created
      .filter(({ outcome }) => outcome.status === 'queued')
      .map(({ task, outcome }) => ({
        ...windowOf(task),
        taskId: outcome.taskId,
        ageMs: 0,
        eligibleAtMs: outcome.eligibleAtMs,
        seq: outcome.seq,
        cost: task.costJson === null ? {} : (JSON.parse(task.costJson) as Record<string, number>),
      }));
    if (offers.length > 0) await this.#context.ready.offer(offers);
    for (const { task, outcome } of created) this.#note(task, outcome);
    await this.#parts.queues.ensure(created.map(({ task }) => task.queue));
  }

  #note(task: Prepared, outcome: Submitted & { kind: 'created' }): void {
    if (outcome.waitsFor === 'room') this.#parts.feeder.noteBacklog(windowOf(task));
    if (outcome.waitsFor === 'time') {
      this.#parts.feeder.noteDue(outcome.eligibleAtMs - outcome.createdAt.getTime());
    }
    const { queue, taskType, priority } = task;
    const move = { from: 'new', to: outcome.status, attempt: 0 } as const;
    tell(this.#context, { taskId: outcome.taskId, queue, taskType, priority, ...move });
  }
}

function windowOf(task: Prepared): { lane: Lane; priority: Prepared['priority'] } {
  const { queue, taskType, capabilities, priority } = task;
  return { lane: { queue, taskType, capabilities }, priority };
}

function takePlace(left: WindowMap<number>, task: Prepared): boolean {
  const window = windowOf(task);
  const places = left.get(window) ?? 0;
  if (places > 0) left.set(window, places - 1);
  return places > 0;
}

function toOutcome(task: Prepared, submitted: Submitted): SubmitOutcome {
  switch (submitted.kind) {
    case 'conflict':
      return {
        kind: 'refused',
        code: 'idempotency_conflict',
        detail:
          `The idempotency key was used for task ${submitted.taskId} with another task type, ` +
          'queue or parameters. Use a new key for a new task.',
      };
    case 'created':
      return { kind: 'accepted', receipt: toReceipt({ ...task, ...submitted }, true) };
    case 'existing':
      return { kind: 'accepted', receipt: toReceipt(submitted, false) };
  }
}

function toReceipt(
  task: Pick<Receipt, 'taskId' | 'status' | 'queue' | 'priority' | 'traceId' | 'createdAt'>,
  created: boolean,
): Receipt {
  const { taskId, status, queue, priority, traceId, createdAt } = task;
  return {
    taskId,
    status,
    queue,
    priority,
    traceId,
    createdAt,
    created,
    queuePosition: null,
    estimatedWaitSeconds: null,
  };
}

/** Equal for equal task type, queue and parameters, whatever the order of the keys. */
function fingerprint(draft: TaskDraft, queue: string): Buffer {
  const subject = [draft.taskType, queue, sortKeys(draft.parameters ?? {})];
  return createHash('sha256').update(JSON.stringify(subject)).digest();
}

function sortKeys(value: JsonValue): JsonValue {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(sortKeys);
  const entries = Object.entries(value as Record<string, JsonValue>);
  return Object.fromEntries(
    entries
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sortKeys(member)] as const),
  );
}
