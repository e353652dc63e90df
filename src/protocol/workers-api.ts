import type { AttemptError } from '../domain/attempt-error.js';
import type { Confinement } from '../domain/confinement.js';
import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { JsonObject, JsonValue } from '../domain/json.js';
import type { Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import type { TaskState } from '../domain/task-state.js';
import type { Page, PageRequest } from './page.js';
import type { TaskTypeDefinition } from './task-types-api.js';

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
  /** Of its code. Of two workers that define a task type, the newer version counts. */
  readonly version?: string;
  /** Of the task types it handles: what submits get that leave it out. */
  readonly definitions?: readonly TaskTypeDefinition[];
  /** Which queues its key reaches; never a part of a request. */
  readonly within?: Confinement;
  /** The API key that registers it; never a part of a request. */
  readonly owner?: string;
}

export interface Registered {
  readonly workerId: WorkerId;
  readonly heartbeatIntervalMs: number;
  readonly leaseMs: number;
  readonly pollWaitSeconds: number;
  /** What of its definitions does not count, and why: a sentence each. Absent: all of it counts. */
  readonly notes?: readonly string[];
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
  readonly traceId: string;
  /** W3C trace context with the span that submitted it. Null: its submit named none. */
  readonly traceparent: string | null;
  readonly deadline: Date;
  /** How long it could have been taken before: since it was eligible, or since it came back to its queue. */
  readonly waitedSeconds: number;
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

/** What becomes of a task whose attempt failed. */
export type AfterFailure =
  | { readonly kind: 'retry'; readonly inSeconds: number }
  /** It comes back, and the attempt costs no retry: its service asked for a pause. */
  | { readonly kind: 'deferral'; readonly inSeconds: number }
  | { readonly kind: 'dead_letter'; readonly reason: string };

export type ReportAnswer =
  | {
      readonly taskId: TaskId;
      readonly accepted: true;
      readonly status: TaskState;
      /** Of a failed attempt; absent when it was reported before. */
      readonly next?: AfterFailure;
    }
  | { readonly taskId: TaskId; readonly accepted: false; readonly reason: 'lease_lost' };

export interface Heartbeat {
  readonly currentLoad: number;
  readonly status: 'active' | 'draining';
  /** Absent: nothing is reconciled. */
  readonly currentTasks?: readonly TaskId[];
  /** Of `currentTasks`, in the same order: a task is taken along to a new id only with its lease. */
  readonly leases?: readonly Lease[];
  /** Of `currentTasks`: they have ended here, and their results did not arrive. They don't time out meanwhile. */
  readonly undelivered?: readonly TaskId[];
  readonly availableCapacity?: number;
  readonly maxCapacity?: number;
  readonly memoryUsage?: number;
  readonly eventLoopDelayMs?: number;
  /** Cores that it uses: 1 is one core. */
  readonly cpuUsage?: number;
  /** Attempts that failed in a row, up to the last one. Absent: none. */
  readonly consecutiveFailures?: number;
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
  /** Answers in order. A report that is sent again is answered with the same status. */
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
  /** Tasks that it could take now. */
  readonly availableCapacity: number;
  readonly memoryUsage: number | null;
  readonly eventLoopDelayMs: number | null;
  /** Cores that it used since the heartbeat before: 1 is one core. */
  readonly cpuUsage: number | null;
  /** Attempts that failed in a row, up to the last one. */
  readonly consecutiveFailures: number;
  /** Null: it was not asked to leave. */
  readonly drainRequestedAt: Date | null;
  readonly registeredAt: Date;
  readonly lastHeartbeatAt: Date;
  /**
   * It failed while others succeeded, and gets nothing until then; in the past: it is tried with a
   * few tasks until one succeeds. Null: it is trusted.
   */
  readonly benchedUntil: Date | null;
}

/** One worker, seen closely. */
export interface WorkerDetail extends WorkerView {
  /** What it holds, up to 100 tasks. */
  readonly currentTasks: readonly TaskId[];
  /** What else its last heartbeat showed. */
  readonly health: JsonObject | null;
}

export interface FleetApi {
  listWorkers(page?: PageRequest): Promise<Page<WorkerView>>;
  getWorker(workerId: WorkerId): Promise<WorkerDetail>;
  drainWorker(workerId: WorkerId): Promise<WorkerView>;
}
