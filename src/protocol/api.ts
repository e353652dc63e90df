import type { AttemptError, AttemptOutcome } from '../domain/attempt-error.js';
import type { CeilingReached, ErrorCode, FieldError } from '../domain/errors.js';
import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { JsonObject, JsonValue } from '../domain/json.js';
import type { Priority } from '../domain/priority.js';
import type { Cost, QueueSettings, RateLimit } from '../domain/queue-settings.js';
import type { Scope } from '../domain/scopes.js';
import type { QueueWork } from '../domain/scaling.js';
import type { TaskState } from '../domain/task-state.js';

/**
 * What can be asked of Sluice, in-process (the engine) or remotely (HTTP). Both refuse with a
 * `SluiceError` of the same code, so nothing above needs to know which one it talks to.
 */

export interface TaskDraft {
  readonly taskType: string;
  readonly queue?: string;
  readonly priority?: Priority;
  readonly parameters?: JsonObject;
  readonly requiredCapabilities?: readonly string[];
  readonly timeoutSeconds?: number;
  readonly maxRetries?: number;
  readonly idempotencyKey?: string;
  readonly workflowId?: string;
  readonly workflowOnFailure?: 'halt' | 'continue';
  readonly runAt?: Date;
  readonly delaySeconds?: number;
  readonly dispatchDeadlineSeconds?: number | null;
  readonly cost?: Cost;
  readonly userId?: string;
  readonly tags?: readonly string[];
  readonly traceId?: string;
}

export interface Receipt {
  readonly taskId: TaskId;
  readonly status: TaskState;
  readonly queue: string;
  readonly priority: Priority;
  readonly queuePosition: number | null;
  readonly estimatedWaitSeconds: number | null;
  readonly traceId: string | null;
  readonly createdAt: Date;
  /** False when the idempotency key already had this task. */
  readonly created: boolean;
}

export type SubmitOutcome =
  | { readonly kind: 'accepted'; readonly receipt: Receipt }
  | {
      readonly kind: 'refused';
      readonly code: ErrorCode;
      readonly detail: string;
      readonly errors?: readonly FieldError[];
      readonly retryAfterSeconds?: number;
      readonly ceiling?: CeilingReached;
    };

export interface TaskView {
  readonly taskId: TaskId;
  readonly taskType: string;
  readonly queue: string;
  readonly priority: Priority;
  readonly effectivePriority: Priority;
  readonly status: TaskState;
  readonly parameters: JsonObject;
  readonly requiredCapabilities: readonly string[];
  readonly retryCount: number;
  readonly maxRetries: number;
  readonly attempt: number;
  readonly createdAt: Date;
  readonly runAt: Date | null;
  readonly eligibleAt: Date;
  readonly queuedAt: Date | null;
  readonly assignedAt: Date | null;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  readonly assignedWorkerId: WorkerId | null;
  readonly progress: { readonly percent: number; readonly message: string | null } | null;
  readonly result: JsonValue;
  readonly error: AttemptError | null;
  readonly timeoutSeconds: number;
  readonly dispatchDeadline: Date | null;
  readonly workflowId: string | null;
  readonly idempotencyKey: string | null;
  readonly cost: Cost | null;
  readonly usage: Cost | null;
  readonly userId: string | null;
  readonly tags: readonly string[];
  readonly traceId: string | null;
  readonly currentStateDurationSeconds: number;
  /** Only when asked for. */
  readonly history?: TaskHistory;
}

export interface TaskHistory {
  readonly states: readonly StateChange[];
  readonly attempts: readonly AttemptView[];
}

export interface StateChange {
  readonly state: TaskState;
  readonly at: Date;
  readonly workerId?: WorkerId;
  readonly attempt?: number;
  readonly reason?: string;
}

export interface AttemptView {
  readonly attempt: number;
  readonly workerId: WorkerId;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly outcome: AttemptOutcome;
  readonly error?: AttemptError;
}

export const waitReasonKinds = [
  'scheduled',
  'workflow',
  'no_room',
  'rate_limit',
  'max_concurrency',
  'paused',
  'circuit_open',
  'no_worker',
  'workers_busy',
  'behind',
] as const;

export interface WaitReason {
  readonly kind: (typeof waitReasonKinds)[number];
  readonly detail: string;
  readonly until?: Date;
}

export interface Explanation {
  readonly taskId: TaskId;
  readonly status: TaskState;
  readonly reasons: readonly WaitReason[];
  /** What is worth knowing but keeps it from nothing; absent when there is none. */
  readonly notes?: readonly string[];
}

export interface TaskFilter {
  readonly status?: TaskState;
  readonly queue?: string;
  readonly taskType?: string;
  readonly userId?: string;
  readonly workflowId?: string;
  readonly tag?: string;
}

export interface PageRequest {
  readonly limit?: number;
  readonly cursor?: string;
}

/** May hold fewer than asked for while `nextCursor` is set: what one call reads is bounded. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: string | null;
}

export interface Cancellation {
  readonly taskId: TaskId;
  readonly wasExecuting: boolean;
  readonly workerNotified: boolean;
}

export interface TaskChange {
  readonly priority?: Priority;
  readonly runAt?: Date;
}

export interface ReplayRequest {
  readonly resetRetryCount?: boolean;
  readonly newPriority?: Priority;
}

/** On whose behalf a call is made. */
export interface Caller {
  /** Whose idempotency keys and submission limits count: the API key's, or empty without keys. */
  readonly owner: string;
  /** Its submits pass when all else is refused. */
  readonly passesCeilings: boolean;
}

/** Who needs no key: the program itself, or anybody on this machine. */
export const anybody: Caller = { owner: '', passesCeilings: false };

export interface TaskApi {
  submit(draft: TaskDraft, caller?: Caller): Promise<Receipt>;
  /** Answers in order; one refused draft does not sink the rest. */
  submitMany(drafts: readonly TaskDraft[], caller?: Caller): Promise<readonly SubmitOutcome[]>;
  getTask(taskId: TaskId, options?: { readonly history?: boolean }): Promise<TaskView>;
  /** The task when it ended, or as it is when the time is over. */
  waitForTask(taskId: TaskId, timeoutMs: number, signal?: AbortSignal): Promise<TaskView>;
  explainTask(taskId: TaskId): Promise<Explanation>;
  listTasks(filter: TaskFilter, page?: PageRequest): Promise<Page<TaskView>>;
  cancelTask(taskId: TaskId): Promise<Cancellation>;
  cancelTasks(filter: TaskFilter): Promise<{ readonly cancelled: number }>;
  changeTask(taskId: TaskId, change: TaskChange): Promise<TaskView>;
  replayTask(taskId: TaskId, request?: ReplayRequest): Promise<TaskView>;
}

export interface QueueView {
  readonly name: string;
  readonly settings: QueueSettings;
  readonly version: number;
  readonly live: QueueLive;
}

export interface QueueLive {
  readonly depth: Readonly<Record<Priority, number>>;
  readonly effectiveDepth: Readonly<Record<Priority, number>>;
  /** Tasks in line that the ready queue does not hold. */
  readonly backlog: number;
  /** Tasks that have not ended; null for a queue without `maxActive`. */
  readonly active: number | null;
  readonly running: number;
  /** Left of each unit, in the limit that has least; below zero: owed. */
  readonly tokens: Readonly<Record<string, number>>;
  /** Until there is a whole token of each unit; 0: there is; null: no limits. */
  readonly nextTokenInMs: number | null;
  readonly pausedUntil: Date | null;
  readonly pausedWhy: string | null;
  readonly circuit: 'closed' | 'open' | 'half_open';
  readonly oldestAgeSeconds: number | null;
  readonly lastMinute: {
    readonly started: number;
    readonly completed: number;
    readonly failed: number;
  };
}

/** What a PUT may name; absent means the default. */
export type QueueChange = Partial<
  Omit<QueueSettings, 'ageing'> & {
    readonly ageing: QueueSettings['ageing'] | null;
  }
>;

export interface LimitView extends RateLimit {
  readonly name: string;
}

export interface QueueApi {
  listQueues(page?: PageRequest): Promise<Page<QueueView>>;
  getQueue(name: string): Promise<QueueView>;
  putQueue(name: string, change: QueueChange): Promise<QueueView>;
  pauseQueue(name: string, until?: Date): Promise<QueueView>;
  resumeQueue(name: string): Promise<QueueView>;
  listLimits(): Promise<readonly LimitView[]>;
  getLimit(name: string): Promise<LimitView>;
  putLimit(name: string, limit: RateLimit): Promise<LimitView>;
  deleteLimit(name: string): Promise<void>;
}

export interface Statistics {
  readonly queues: Readonly<
    Record<Priority, { readonly depth: number; readonly oldestAgeSeconds: number | null }>
  >;
  readonly workers: {
    readonly active: number;
    readonly draining: number;
    readonly dead: number;
    readonly totalCapacity: number;
    readonly usedCapacity: number;
  };
  readonly age: {
    readonly p50Seconds: number | null;
    readonly p95Seconds: number | null;
    readonly oldestSeconds: number | null;
  };
  readonly throughput: {
    readonly completedLastMinute: number;
    readonly failedLastMinute: number;
    readonly avgTaskDurationSeconds: number | null;
  };
  /** Tasks that have not ended, of how many at most. */
  readonly admission: { readonly active: number; readonly maxActive: number };
  readonly recovery: {
    readonly leasesLapsedLastHour: number;
    readonly timeoutsLastHour: number;
    readonly reofferedLastHour: number;
  };
}

/** How many workers there should be, and why. */
export interface Scaling {
  readonly desired: number;
  readonly current: number;
  readonly min: number;
  readonly max: number;
  /** Tasks that wait for nothing but a worker. */
  readonly waiting: number;
  readonly reason: string;
  readonly queues: readonly QueueWork[];
  readonly provisioner: {
    readonly kind: 'none' | 'process' | 'webhook';
    readonly lastAskedAt: Date | null;
    readonly failingSince: Date | null;
    readonly error: string | null;
  };
}

export interface DeadLetterFilter {
  readonly queue?: string;
  readonly taskType?: string;
  readonly code?: string;
  /** That ended then or later. */
  readonly since?: Date;
  /** That ended before. */
  readonly until?: Date;
}

export interface DeadLetterReplay extends ReplayRequest {
  /** How many become due in a second, so that what broke is not run over; 100 when absent. */
  readonly perSecond?: number;
  /** The `nextCursor` of the answer before. */
  readonly cursor?: string;
}

/** What one call replays is bounded. What it answers with is committed. */
export interface ReplayedDeadLetters {
  readonly replayed: number;
  /** When the last of them may run; null: there was none. */
  readonly lastDueAt: Date | null;
  /** Not null: there are more. Calling again with it goes on where this call ended. */
  readonly nextCursor: string | null;
}

export interface DeadLetterPattern {
  readonly queue: string;
  readonly taskType: string;
  readonly code: string;
  readonly count: number;
  readonly firstSeen: Date;
  readonly lastSeen: Date;
  readonly retriable: boolean;
  readonly example: { readonly taskId: TaskId; readonly message: string };
}

export interface DeadLetterApi {
  listDeadLetters(
    filter: DeadLetterFilter,
    page?: PageRequest,
  ): Promise<Page<TaskView> & { readonly totalCount: number }>;
  replayDeadLetters(
    filter: DeadLetterFilter,
    request?: DeadLetterReplay,
  ): Promise<ReplayedDeadLetters>;
  analyseDeadLetters(): Promise<readonly DeadLetterPattern[]>;
}

/** What a worker can do; absent or `["*"]` types mean every type, absent queues every queue. */
export interface WorkerOffer {
  readonly capabilities?: readonly string[];
  readonly taskTypes?: readonly string[];
  readonly queues?: readonly string[];
}

export interface Registration extends WorkerOffer {
  readonly capacity?: number;
  readonly name?: string;
  readonly host?: string;
  readonly version?: string;
}

export interface Registered {
  readonly workerId: WorkerId;
  readonly heartbeatIntervalMs: number;
  readonly leaseMs: number;
  readonly pollWaitSeconds: number;
}

export interface PollRequest extends WorkerOffer {
  /** 0 asks for nothing but news: cancellations and drain. */
  readonly availableCapacity: number;
  readonly waitMs?: number;
  readonly prefetch?: boolean;
}

export interface ClaimedTask {
  readonly taskId: TaskId;
  readonly taskType: string;
  readonly queue: string;
  readonly parameters: JsonObject;
  readonly timeoutSeconds: number;
  readonly attempt: number;
  readonly lease: Lease;
  readonly priority: Priority;
  readonly effectivePriority: Priority;
  readonly retryCount: number;
  readonly workflowId: string | null;
  readonly traceId: string | null;
  readonly deadline: Date;
}

export interface PollAnswer {
  readonly tasks: readonly ClaimedTask[];
  readonly cancelled: readonly TaskId[];
  readonly drain: boolean;
}

export interface Held {
  readonly taskId: TaskId;
  readonly lease: Lease;
}

export type Report = Held & {
  readonly executionDurationSeconds?: number;
  readonly usage?: Cost;
} & (
    | { readonly status: 'completed'; readonly result?: JsonValue }
    | { readonly status: 'failed'; readonly error: AttemptError }
  );

export type ReportAnswer =
  | { readonly taskId: TaskId; readonly accepted: true; readonly status: TaskState }
  | { readonly taskId: TaskId; readonly accepted: false; readonly reason: 'lease_lost' };

export interface Heartbeat {
  readonly currentLoad: number;
  readonly status: 'active' | 'draining';
  /** Absent: nothing is reconciled. */
  readonly currentTasks?: readonly TaskId[];
  readonly availableCapacity?: number;
  readonly maxCapacity?: number;
  readonly memoryUsage?: number;
  readonly eventLoopDelayMs?: number;
  readonly health?: JsonObject;
}

export interface HeartbeatAnswer {
  readonly shouldDrain: boolean;
  readonly cancelled: readonly TaskId[];
  readonly lost: readonly TaskId[];
}

/** The side that workers talk to. A stale lease is `lease_lost`, an unknown id `worker_unknown`. */
export interface WorkerApi {
  register(registration: Registration): Promise<Registered>;
  poll(workerId: WorkerId, request: PollRequest, signal?: AbortSignal): Promise<PollAnswer>;
  start(workerId: WorkerId, held: Held): Promise<void>;
  progress(
    workerId: WorkerId,
    held: Held,
    progress: { readonly percent: number; readonly message?: string },
  ): Promise<void>;
  /** Answers in order. Sending a report again is answered as the first time. */
  report(workerId: WorkerId, reports: readonly Report[]): Promise<readonly ReportAnswer[]>;
  release(
    workerId: WorkerId,
    held: readonly Held[],
  ): Promise<{ readonly released: readonly TaskId[]; readonly lost: readonly TaskId[] }>;
  heartbeat(workerId: WorkerId, beat: Heartbeat): Promise<HeartbeatAnswer>;
  deregister(workerId: WorkerId): Promise<void>;
}

export interface WorkerView {
  readonly workerId: WorkerId;
  readonly name: string | null;
  readonly host: string | null;
  readonly version: string | null;
  readonly status: 'active' | 'draining' | 'dead';
  readonly capabilities: readonly string[];
  readonly taskTypes: readonly string[] | null;
  readonly queues: readonly string[] | null;
  readonly capacity: number;
  readonly currentLoad: number;
  readonly memoryUsage: number | null;
  readonly eventLoopDelayMs: number | null;
  readonly registeredAt: Date;
  readonly lastHeartbeatAt: Date;
  /**
   * It failed while others succeeded, and gets nothing until then; in the past: it is tried with a
   * few tasks until one succeeds. Null: it is trusted.
   */
  readonly benchedUntil: Date | null;
}

export interface FleetApi {
  listWorkers(page?: PageRequest): Promise<Page<WorkerView>>;
  getWorker(workerId: WorkerId): Promise<WorkerView>;
  drainWorker(workerId: WorkerId): Promise<WorkerView>;
}

export interface KeyDraft {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Absent: until it is revoked. */
  readonly expiresInSeconds?: number;
  readonly passesCeilings?: boolean;
}

export interface KeyView {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly passesCeilings: boolean;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  /** Right to the minute; null: never. */
  readonly lastUsedAt: Date | null;
}

export interface CreatedKey extends KeyView {
  /** Told this once: only its hash is kept. */
  readonly key: string;
  /** From the first key on every call needs one. */
  readonly isFirst: boolean;
}

export interface KeyApi {
  createKey(draft: KeyDraft): Promise<CreatedKey>;
  listKeys(page?: PageRequest): Promise<Page<KeyView>>;
  /** Again gives the same answer. */
  revokeKey(id: string): Promise<KeyView>;
}

export interface SluiceApi extends TaskApi, QueueApi, DeadLetterApi, WorkerApi, FleetApi, KeyApi {
  getStatistics(): Promise<Statistics>;
  getScaling(): Promise<Scaling>;
}
