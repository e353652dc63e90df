import type { ReachedCeiling } from '../domain/admission.js';
import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { Priority } from '../domain/priority.js';
import type { TaskState, WaitsFor } from '../domain/task-state.js';

export interface NewTask {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly taskType: string;
  readonly capabilities: readonly string[];
  readonly priority: Priority;
  readonly parametersJson: string;
  readonly timeoutSeconds: number;
  readonly maxRetries: number;
  readonly runAt: Date | null;
  readonly delaySeconds: number | null;
  readonly dispatchDeadlineSeconds: number | null;
  readonly workflowId: string | null;
  readonly haltsWorkflow: boolean;
  readonly idempotency: Idempotency | null;
  readonly costJson: string | null;
  readonly userId: string | null;
  readonly tags: readonly string[];
  /** As `traceToText` writes it. */
  readonly trace: string | null;
  /** The key that submits it, if that key is confined to its own tasks. */
  readonly owner: string | null;
  /** Whoever submits it offers it as well. Else its time is now, and whoever serves finds it. */
  readonly isOffered: boolean;
  /** Let in whatever the ceilings say, and counted. */
  readonly passesCeilings: boolean;
  /** Somebody has it already, if it is due at once and this is still the generation. */
  readonly claim: NewClaim | null;
}

export interface NewClaim {
  readonly workerId: WorkerId;
  readonly lease: Lease;
  /** Straight into executing; else assigned, until the worker says start. */
  readonly start: boolean;
  /** This and the next are the same for all of a batch. */
  readonly generation: number;
  /** How long an assigned one may wait for its start. */
  readonly unstartedMs: number;
}

export interface Idempotency {
  readonly scope: string;
  readonly key: string;
  readonly fingerprint: Buffer;
}

/** No place was free for it. */
export interface Refused {
  readonly kind: 'refused';
  readonly taskId: TaskId;
  readonly reached: ReachedCeiling;
  /** How many ever ended in its scope: two of these a while apart tell how fast places get free. */
  readonly ended: number;
}

/** A task that was let in. */
export type Created = Extract<Submitted, { kind: 'created' }>;

export type Submitted =
  | {
      readonly kind: 'created';
      readonly taskId: TaskId;
      readonly status: 'queued' | 'pending';
      readonly waitsFor: WaitsFor | null;
      readonly seq: number;
      readonly createdAt: Date;
      /** To the microsecond, as the order goes by it. */
      readonly eligibleAtMs: number;
      /** Written as claimed at the same instant. */
      readonly isClaimed: boolean;
    }
  | {
      readonly kind: 'existing';
      readonly taskId: TaskId;
      readonly status: TaskState;
      readonly queue: string;
      readonly priority: Priority;
      readonly trace: string | null;
      readonly createdAt: Date;
    }
  | { readonly kind: 'conflict'; readonly taskId: TaskId }
  | Refused;
