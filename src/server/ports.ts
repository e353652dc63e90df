import type { Confinement } from '../domain/confinement.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { ApiKeys } from '../engine/api-keys.js';
import type { Follower, Following } from '../engine/cluster-events.js';
import type { CalledApi } from '../protocol/called-api.js';
import type { TaskEvent } from '../protocol/events.js';

export type Readiness =
  { readonly ready: true } | { readonly ready: false; readonly reason: string };

/** As `/readyz` tells it. */
export interface ReplicaStatus {
  readonly leads: boolean;
  readonly leader: string | null;
  readonly leader_since: string | null;
  readonly leader_changes: number;
  readonly followers: number;
  readonly delivery: 'listen' | 'poll';
  readonly calls_answered: number;
  readonly calls_lost: number;
  readonly round_trip_ms: { readonly median: number | null; readonly p99: number | null };
}

export type Progress =
  { readonly progressing: true } | { readonly progressing: false; readonly reason: string };

/** What the health routes ask. Neither question changes anything. */
export interface ServerHealth {
  /** Not null: tasks and results are accepted, and none can be handed out. */
  degradation(): string | null;
  /** What does not go well and keeps nobody from being served. */
  notes?(): readonly string[];
  /** Who leads and how the mail flows; null: no server leads others. */
  replica?(): ReplicaStatus | null;
  /** Whether this server can serve: Postgres and the ready queue answer. */
  readiness(): Promise<Readiness>;
  /** Not progressing: capacity is free, work is ready, and nothing was claimed for a while. */
  progress(): Promise<Progress>;
}

/** Where live events come from. */
export interface EventSource {
  /** Of this server. Answers with how to stop listening. */
  subscribe(listener: (event: TaskEvent) => void): () => void;
  /** Of all servers, for people. */
  follow(follower: Follower): Following;
}

/** The text of `/metrics`. */
export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
}

/** The engine, with what decides who reaches what. */
export interface ServedApi extends CalledApi {
  /** Within what the caller reaches: it tells nothing of the tasks of others. */
  explainTask(taskId: TaskId, within?: Confinement): ReturnType<CalledApi['explainTask']>;
  /** Throws as for a task that there is not, when the confinement does not reach it. */
  refuseUnreached(taskId: TaskId, within: Confinement): Promise<void>;
  /** Throws as for a worker that there is not, when another key registered it. */
  refuseForeign(workerId: WorkerId, owner: string): Promise<void>;
  /** Those that a worker registered for; null: every queue. */
  queuesOf(workerId: WorkerId): Promise<readonly string[] | null>;
  /** Those that it reaches and that have tasks; when there are very many, others each time. */
  findWaitingQueues(within: Confinement): Promise<readonly string[]>;
}

/** What a server needs of the API keys: who calls, and whether they are still good. */
export type KeyRing = Pick<
  ApiKeys,
  'areNeeded' | 'authenticate' | 'isGood' | 'onEnded' | 'signIn' | 'signOut'
>;

/** Of a server that has none: everybody on this machine may call. */
export const noKeys: KeyRing = {
  areNeeded: () => false,
  authenticate: async () => null,
  isGood: () => true,
  onEnded: () => () => undefined,
  signIn: async () => null,
  signOut: async () => undefined,
};
