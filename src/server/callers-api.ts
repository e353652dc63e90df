import type { FastifyRequest } from 'fastify';
import {
  isConfined,
  isExact,
  queueForbidden,
  reachesQueue,
  type Confinement,
} from '../domain/confinement.js';
import { SluiceError } from '../domain/errors.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { AlertDraft, AlertFilter, AlertSilence } from '../protocol/alerts-api.js';
import type { SluiceApi } from '../protocol/api.js';
import type { AuditFilter } from '../protocol/audit-api.js';
import type {
  BulkReplay,
  BulkReprioritise,
  BulkRequest,
  TaskCountRequest,
} from '../protocol/bulk-api.js';
import type { Caller } from '../protocol/caller.js';
import type { DeadLetterFilter, DeadLetterReplay } from '../protocol/dead-letters-api.js';
import type { KeyDraft } from '../protocol/keys-api.js';
import type { PageRequest } from '../protocol/page.js';
import type { QueueChange, QueueDraft, QueueView, RateLimitDraft } from '../protocol/queues-api.js';
import type { SeriesRequest } from '../protocol/series-api.js';
import type {
  ListRequest,
  ReplayRequest,
  SubmitOutcome,
  TaskChange,
  TaskDraft,
  TaskFilter,
  TaskSearch,
} from '../protocol/tasks-api.js';
import type {
  Heartbeat,
  Held,
  PollAnswer,
  PollRequest,
  Registration,
  Report,
} from '../protocol/workers-api.js';
import type { App } from './app-type.js';
import { callerOf } from './caller.js';
import type { ServedApi } from './ports.js';

/** Queues that have got their first task are looked for this often while a poll waits. */
const lookForQueuesMs = 1_000;

declare module 'fastify' {
  interface FastifyRequest {
    /** The API as its caller may use it. Routes have no other. */
    readonly api: SluiceApi;
  }
}

export function offerApi(app: App, api: ServedApi): void {
  app.decorateRequest('api', {
    getter(this: FastifyRequest) {
      return new CallersApi(api, callerOf(this));
    },
  });
}

/**
 * The API within what its caller reaches, and in its caller's name. What it does not reach is answered as what does not exist, and
 * the ids of workers belong to the key that registered them. A method that is added to the API has to be
 * written here as well: the compiler says so.
 */
class CallersApi implements SluiceApi {
  readonly #api: ServedApi;
  readonly #caller: Caller;
  readonly #within: Confinement;
  /** Without keys the ids of workers belong to nobody. */
  readonly #hasKey: boolean;

  constructor(api: ServedApi, caller: Caller) {
    this.#api = api;
    this.#caller = caller;
    this.#within = caller.confinement;
    this.#hasKey = caller.actor.keyId !== null;
  }

  /** Refused where its queue is decided, which may be that of its type. */
  submit(draft: TaskDraft) {
    return this.#api.submit(draft, this.#caller);
  }

  submitMany(drafts: readonly TaskDraft[]): Promise<readonly SubmitOutcome[]> {
    return this.#api.submitMany(drafts, this.#caller);
  }

  async getTask(taskId: TaskId, options?: { readonly history?: boolean }) {
    await this.#refuseTask(taskId);
    return this.#api.getTask(taskId, options);
  }

  async waitForTask(taskId: TaskId, timeoutMs: number, signal?: AbortSignal) {
    await this.#refuseTask(taskId);
    return this.#api.waitForTask(taskId, timeoutMs, signal);
  }

  async explainTask(taskId: TaskId) {
    await this.#refuseTask(taskId);
    return this.#api.explainTask(taskId, this.#within);
  }

  listTasks(filter: TaskSearch, page?: ListRequest) {
    return this.#api.listTasks(this.#narrowed(filter), page);
  }

  async cancelTask(taskId: TaskId) {
    await this.#refuseTask(taskId);
    return this.#api.cancelTask(taskId, this.#caller);
  }

  countTasks(filter: TaskFilter, request?: TaskCountRequest) {
    return this.#api.countTasks(this.#narrowed(filter), request);
  }

  cancelTasks(filter: TaskFilter, request?: BulkRequest) {
    return this.#api.cancelTasks(this.#narrowed(filter), request, this.#caller);
  }

  replayTasks(filter: TaskFilter, request?: BulkReplay) {
    return this.#api.replayTasks(this.#narrowed(filter), request, this.#caller);
  }

  reprioritiseTasks(filter: TaskFilter, request: BulkReprioritise) {
    return this.#api.reprioritiseTasks(this.#narrowed(filter), request, this.#caller);
  }

  async changeTask(taskId: TaskId, change: TaskChange) {
    await this.#refuseTask(taskId);
    return this.#api.changeTask(taskId, change, this.#caller);
  }

  async replayTask(taskId: TaskId, request?: ReplayRequest) {
    await this.#refuseTask(taskId);
    return this.#api.replayTask(taskId, request, this.#caller);
  }

  listDeadLetters(filter: DeadLetterFilter, page?: ListRequest) {
    return this.#api.listDeadLetters(this.#narrowed(filter), page);
  }

  replayDeadLetters(filter: DeadLetterFilter, request?: DeadLetterReplay) {
    return this.#api.replayDeadLetters(this.#narrowed(filter), request, this.#caller);
  }

  analyseDeadLetters() {
    return this.#api.analyseDeadLetters(this.#within);
  }

  listQueues(page?: PageRequest) {
    return this.#api.listQueues(page, this.#within);
  }

  listTaskTypes(page?: PageRequest) {
    return this.#api.listTaskTypes(page, this.#within);
  }

  getTaskType(taskType: string) {
    return this.#api.getTaskType(taskType, this.#within);
  }

  async getQueue(name: string): Promise<QueueView> {
    this.#hideQueue(name);
    return this.#api.getQueue(name);
  }

  async getForecast(queue: string) {
    this.#hideQueue(queue);
    return this.#api.getForecast(queue);
  }

  /** It tells of tasks of everybody. */
  async listPushbacks(queue: string, page?: PageRequest) {
    this.#hideQueue(queue);
    if (this.#within.owner !== null) throw concernsAll();
    return this.#api.listPushbacks(queue, page);
  }

  async putQueue(name: string, draft: QueueDraft) {
    this.#refuseQueue(name);
    return this.#api.putQueue(name, draft, this.#caller);
  }

  async changeQueue(name: string, change: QueueChange) {
    this.#refuseQueue(name);
    return this.#api.changeQueue(name, change, this.#caller);
  }

  async pauseQueue(name: string, until?: Date) {
    this.#refuseQueue(name);
    return this.#api.pauseQueue(name, until, this.#caller);
  }

  async resumeQueue(name: string) {
    this.#refuseQueue(name);
    return this.#api.resumeQueue(name, this.#caller);
  }

  async register(registration: Registration) {
    for (const queue of registration.queues ?? []) {
      if (queue !== '*') this.#refuseQueue(queue);
    }
    if (!this.#hasKey) return this.#api.register(registration);
    return this.#api.register({
      ...registration,
      owner: this.#caller.owner,
      within: this.#within,
    });
  }

  async poll(workerId: WorkerId, request: PollRequest, signal?: AbortSignal) {
    await this.#refuseForeign(workerId);
    return this.#within.queues === null
      ? this.#api.poll(workerId, request, signal)
      : this.#pollWithin(this.#within.queues, workerId, request, signal);
  }

  async start(workerId: WorkerId, held: Held) {
    await this.#refuseForeign(workerId);
    return this.#api.start(workerId, held);
  }

  async progress(
    workerId: WorkerId,
    held: Held,
    progress: { readonly percent: number; readonly message?: string },
  ) {
    await this.#refuseForeign(workerId);
    return this.#api.progress(workerId, held, progress);
  }

  async report(workerId: WorkerId, reports: readonly Report[]) {
    await this.#refuseForeign(workerId);
    return this.#api.report(workerId, reports);
  }

  async release(workerId: WorkerId, held: readonly Held[]) {
    await this.#refuseForeign(workerId);
    return this.#api.release(workerId, held);
  }

  async heartbeat(workerId: WorkerId, beat: Heartbeat) {
    await this.#refuseForeign(workerId);
    return this.#api.heartbeat(workerId, beat);
  }

  async deregister(workerId: WorkerId) {
    await this.#refuseForeign(workerId);
    return this.#api.deregister(workerId);
  }

  async listAlerts(filter?: AlertFilter) {
    return this.#unconfined().listAlerts(filter);
  }

  async putAlert(name: string, draft: AlertDraft) {
    return this.#unconfined().putAlert(name, draft, this.#caller);
  }

  async silenceAlert(name: string, silence: AlertSilence) {
    return this.#unconfined().silenceAlert(name, silence, this.#caller);
  }

  async listLimits() {
    return this.#unconfined().listLimits();
  }

  async getLimit(name: string) {
    return this.#unconfined().getLimit(name);
  }

  async putLimit(name: string, limit: RateLimitDraft) {
    return this.#unconfined().putLimit(name, limit, this.#caller);
  }

  async deleteLimit(name: string) {
    return this.#unconfined().deleteLimit(name, this.#caller);
  }

  async listWorkers(page?: PageRequest) {
    return this.#unconfined().listWorkers(page);
  }

  async getWorker(workerId: WorkerId) {
    return this.#unconfined().getWorker(workerId);
  }

  async drainWorker(workerId: WorkerId) {
    return this.#unconfined().drainWorker(workerId, this.#caller);
  }

  async getStatistics() {
    return this.#unconfined().getStatistics();
  }

  async getAttention() {
    return this.#unconfined().getAttention();
  }

  async getSeries(request: SeriesRequest = {}) {
    if (request.queue === undefined) return this.#unconfined().getSeries(request);
    this.#hideQueue(request.queue);
    return this.#api.getSeries(request);
  }

  async getScaling() {
    return this.#unconfined().getScaling();
  }

  async createKey(draft: KeyDraft) {
    return this.#unconfined().createKey(draft, this.#caller);
  }

  async listKeys(page?: PageRequest) {
    return this.#unconfined().listKeys(page);
  }

  async revokeKey(id: string) {
    return this.#unconfined().revokeKey(id, this.#caller);
  }

  async listSessions(keyId: string) {
    return this.#unconfined().listSessions(keyId);
  }

  async endSession(keyId: string, sessionId: string) {
    return this.#unconfined().endSession(keyId, sessionId, this.#caller);
  }

  async listAudit(filter?: AuditFilter, page?: PageRequest) {
    return this.#unconfined().listAudit(filter, page);
  }

  #narrowed<Filter extends TaskFilter | DeadLetterFilter>(filter: Filter): Filter {
    return isConfined(this.#within) ? { ...filter, within: this.#within } : filter;
  }

  /** For what concerns every queue and every task. */
  #unconfined(): ServedApi {
    if (isConfined(this.#within)) throw concernsAll();
    return this.#api;
  }

  async #refuseTask(taskId: TaskId): Promise<void> {
    if (isConfined(this.#within)) await this.#api.refuseUnreached(taskId, this.#within);
  }

  /** For reads: as if there were no such queue. */
  #hideQueue(queue: string): void {
    if (reachesQueue(this.#within, queue)) return;
    throw new SluiceError('queue_not_found', `There is no queue ${queue}.`);
  }

  #refuseQueue(queue: string): void {
    if (!reachesQueue(this.#within, queue)) throw queueForbidden(this.#within, queue);
  }

  async #refuseForeign(workerId: WorkerId): Promise<void> {
    if (this.#hasKey) await this.#api.refuseForeign(workerId, this.#caller.owner);
  }

  /** Only tasks of queues that the key reaches, also of those that are made while it waits. */
  async #pollWithin(
    patterns: readonly string[],
    workerId: WorkerId,
    request: PollRequest,
    signal: AbortSignal | undefined,
  ): Promise<PollAnswer> {
    const named = await this.#namedQueues(workerId, request);
    for (const queue of named ?? []) this.#refuseQueue(queue);
    const exact = named ?? (patterns.every(isExact) ? patterns : null);
    if (exact !== null) return this.#api.poll(workerId, { ...request, queues: exact }, signal);
    const endsAtMs = performance.now() + (request.waitMs ?? 0);
    for (;;) {
      const leftMs = Math.max(0, endsAtMs - performance.now());
      const waitMs = Math.min(leftMs, lookForQueuesMs);
      const queues = await this.#api.findWaitingQueues(this.#within);
      const answer = await this.#api.poll(workerId, { ...request, queues, waitMs }, signal);
      const hasNews = answer.tasks.length + answer.cancelled.length > 0 || answer.drain;
      if (hasNews || leftMs <= waitMs || signal?.aborted === true) return answer;
    }
  }

  /** Null: every queue, by this poll or by its registration. */
  async #namedQueues(
    workerId: WorkerId,
    { queues }: PollRequest,
  ): Promise<readonly string[] | null> {
    const named = queues ?? (await this.#api.queuesOf(workerId));
    return named === null || named.includes('*') ? null : named;
  }
}

export function concernsAll(): SluiceError {
  const detail =
    'This key is confined to some queues or to its own tasks; this call concerns all of them.';
  return new SluiceError('forbidden', detail);
}
