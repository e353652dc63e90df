import { unconfined, type Confinement } from '../domain/confinement.js';
import { SluiceError } from '../domain/errors.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { SluiceApi } from '../protocol/api.js';
import { bounds } from '../protocol/bounds.js';
import { anybody } from '../protocol/caller.js';
import type {
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterPattern,
  DeadLetterReplay,
  ReplayedDeadLetters,
} from '../protocol/dead-letters-api.js';
import type { TaskEvent } from '../protocol/events.js';
import type { CreatedKey, KeyDraft, KeyView, SessionView } from '../protocol/keys-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type {
  LimitView,
  QueueChange,
  QueueDraft,
  QueueView,
  RateLimitDraft,
} from '../protocol/queues-api.js';
import type { Scaling } from '../protocol/scaling-api.js';
import type { Series, SeriesRequest } from '../protocol/series-api.js';
import type { Statistics } from '../protocol/statistics-api.js';
import type { ListedTaskType, TaskTypeView } from '../protocol/task-types-api.js';
import type {
  Cancellation,
  Explanation,
  ListedTask,
  ListRequest,
  Receipt,
  ReplayRequest,
  SubmitOutcome,
  TaskApi,
  TaskDraft,
  TaskFilter,
  TaskView,
} from '../protocol/tasks-api.js';
import type {
  Heartbeat as Beat,
  HeartbeatAnswer,
  Held,
  PollAnswer,
  PollRequest,
  Registered,
  Registration,
  Report as WorkerReport,
  ReportAnswer,
  WorkerApi,
  WorkerView,
} from '../protocol/workers-api.js';
import type { AnswerBudget } from './answer-budget.js';
import { analyseDeadLetters, listDeadLetters } from '../store/dead-letters.js';
import type { Instant, Queryable } from '../store/database.js';
import { listTasks } from '../store/list-tasks.js';
import { findWorker, listWorkers, requestDrain } from '../store/workers.js';
import type { ApiKeys } from './api-keys.js';
import { Cached } from './cached.js';
import type { Follower, Following } from './cluster-events.js';
import { asRefusal, instant, type EngineContext } from './context.js';
import { joinParts, type EngineParts } from './engine-parts.js';
import type { Scaler } from './scaler.js';
import type { Role } from './serving.js';
import { getSeries } from './series.js';
import { getStatistics } from './statistics.js';
import { WaitingQueues } from './waiting-queues.js';

/** What counts many tasks is computed once in so long, however many callers ask. */
const lookedAtForMs = 1_000;
/** Each may hold as many bytes as an answer. */
const maxAnalyses = 16;
/** By one poll of a worker whose key is confined; the next ones ask for the others. */
const maxQueuesPolled = 1_000;

/** The use cases, joined: everything that can be asked of Sluice, in this process. */
export class Engine implements SluiceApi {
  /** Who may call over HTTP. Whoever serves it has them watched. */
  readonly keys: ApiKeys;
  /** How many workers there should be, for whoever starts them. */
  readonly scaler: Scaler;
  readonly #context: EngineContext;
  readonly #parts: EngineParts;
  readonly #statistics: Cached<Statistics>;
  /** By confinement, the one that was asked for last standing last. */
  readonly #analyses = new Map<string, Cached<DeadLetterPattern[]>>();
  readonly #waitingQueues: WaitingQueues;
  #closing: Promise<void> | null = null;

  constructor(context: EngineContext, role: Role, onStandby: (message: string) => void) {
    this.#context = context;
    this.#parts = joinParts(context, role, { isClosing: () => this.#closing !== null, onStandby });
    this.keys = this.#parts.keys;
    const { line, counters, admission } = this.#parts;
    this.#statistics = new Cached(lookedAtForMs, () =>
      getStatistics(context, line, counters, admission),
    );
    this.#waitingQueues = new WaitingQueues(context.db, {
      maxNames: maxQueuesPolled,
      freshForMs: lookedAtForMs,
    });
    this.scaler = this.#parts.scaler;
  }

  /** Resolves when this process serves, or knows that it has to stand by. */
  begin(): Promise<void> {
    return this.#parts.serving.begin();
  }

  /** Null while this process hands out work; else why it does not. */
  notServing(): string | null {
    return this.#parts.serving.notServing();
  }

  /** Not null: servers of the other kind, with or without Redis, serve this database. */
  mixture(): string | null {
    return this.#parts.serving.mixture();
  }

  /** Shared with what sends the answers. */
  get answers(): AnswerBudget {
    return this.#context.answers;
  }

  databaseTrouble(): string | null {
    return this.#parts.health.databaseTrouble();
  }

  /** While it is not null, tasks are accepted and reported, and none is handed out. */
  readyQueueTrouble(): string | null {
    return this.#context.ready.trouble();
  }

  /** Null also while another process serves: it claims, and knows better. */
  async stuckTask(): Promise<Explanation | null> {
    return this.notServing() === null ? this.#parts.health.stuckTask() : null;
  }

  /** How many submits were refused since this process began, by reason. */
  refused(): Readonly<Record<string, number>> {
    return this.#parts.submit.refused();
  }

  subscribe(listener: (event: TaskEvent) => void): () => void {
    return this.#context.events.subscribe(listener);
  }

  /** Events of all servers, for people. */
  follow(follower: Follower): Following {
    return this.#parts.clusterEvents.follow(follower);
  }

  /** Before `close`, when calls are still answered for a while: a standby takes over now. */
  handOver(): Promise<void> {
    return this.#parts.serving.handOver();
  }

  /** Resolves when nothing of it runs any more; waiting polls are answered. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#parts.waiters.wakeAll();
    await this.keys.stop();
    await this.#parts.serving.leave();
    this.#parts.news.close();
    this.#parts.clusterEvents.close();
    await this.#context.closeLinks();
    await this.#context.db.close();
  }

  async submit(draft: TaskDraft, caller = anybody): Promise<Receipt> {
    const receipt = await refusing(this.#parts.submit.submit(draft, caller));
    this.#context.payloads?.submitted([draft], [{ kind: 'accepted', receipt }]);
    return receipt;
  }

  async submitMany(
    drafts: readonly TaskDraft[],
    caller = anybody,
  ): Promise<readonly SubmitOutcome[]> {
    const outcomes = await refusing(this.#parts.submit.submitMany(drafts, caller));
    this.#context.payloads?.submitted(drafts, outcomes);
    return outcomes;
  }

  getTask(taskId: TaskId, options?: { readonly history?: boolean }): Promise<TaskView> {
    return refusing(this.#parts.read.getTask(taskId, options?.history === true));
  }

  waitForTask(taskId: TaskId, timeoutMs: number, signal?: AbortSignal): Promise<TaskView> {
    return refusing(this.#parts.read.waitForTask(taskId, timeoutMs, signal));
  }

  explainTask(taskId: TaskId): Promise<Explanation> {
    return refusing(this.#parts.explain.explainTask(taskId));
  }

  /** Throws as for a task that there is not, when the confinement does not reach it. */
  refuseUnreached(taskId: TaskId, within: Confinement): Promise<void> {
    return refusing(this.#parts.read.refuseUnreached(taskId, within));
  }

  /** Throws as for a worker that there is not, when another key registered it. */
  refuseForeign(workerId: WorkerId, owner: string): Promise<void> {
    return refusing(this.#parts.fleet.refuseForeign(workerId, owner));
  }

  /** Those that a worker registered for; null: every queue. */
  async queuesOf(workerId: WorkerId): Promise<readonly string[] | null> {
    return (await refusing(this.#parts.fleet.get(workerId))).offer.queues ?? null;
  }

  /** Those that it reaches and that have tasks; when there are very many, others each time. */
  findWaitingQueues(within: Confinement): Promise<readonly string[]> {
    return refusing(this.#waitingQueues.find(within));
  }

  listTasks(filter: TaskFilter, page: ListRequest = {}): Promise<Page<ListedTask>> {
    return this.#list((db, now) => listTasks(db, filter, page, now));
  }

  cancelTask(taskId: TaskId): Promise<Cancellation> {
    return refusing(this.#parts.cancel.cancelTask(taskId));
  }

  cancelTasks(filter: TaskFilter): Promise<{ readonly cancelled: number }> {
    return refusing(this.#parts.cancel.cancelTasks(filter));
  }

  async changeTask(
    taskId: TaskId,
    change: Parameters<TaskApi['changeTask']>[1],
  ): Promise<TaskView> {
    const { read, replay } = this.#parts;
    return refusing(read.write(taskId, () => replay.changeTask(taskId, change)));
  }

  async replayTask(taskId: TaskId, request: ReplayRequest = {}): Promise<TaskView> {
    const { read, replay } = this.#parts;
    return refusing(read.write(taskId, () => replay.replayTask(taskId, request)));
  }

  listQueues(page: PageRequest = {}, within = unconfined): Promise<Page<QueueView>> {
    return refusing(this.#parts.queueControl.listQueues(page, within));
  }

  getQueue(name: string): Promise<QueueView> {
    return refusing(this.#parts.queueControl.getQueue(name));
  }

  putQueue(name: string, draft: QueueDraft): Promise<QueueView> {
    return refusing(this.#parts.queueControl.putQueue(name, draft));
  }

  changeQueue(name: string, change: QueueChange): Promise<QueueView> {
    return refusing(this.#parts.queueControl.changeQueue(name, change));
  }

  pauseQueue(name: string, until?: Date): Promise<QueueView> {
    return refusing(this.#parts.queueControl.pauseQueue(name, until));
  }

  resumeQueue(name: string): Promise<QueueView> {
    return refusing(this.#parts.queueControl.resumeQueue(name));
  }

  listLimits(): Promise<readonly LimitView[]> {
    return refusing(this.#parts.queueControl.listLimits());
  }

  getLimit(name: string): Promise<LimitView> {
    return refusing(this.#parts.queueControl.getLimit(name));
  }

  putLimit(name: string, limit: RateLimitDraft): Promise<LimitView> {
    return refusing(this.#parts.queueControl.putLimit(name, limit));
  }

  deleteLimit(name: string): Promise<void> {
    return refusing(this.#parts.queueControl.deleteLimit(name));
  }

  getStatistics(): Promise<Statistics> {
    return refusing(this.#statistics.get());
  }

  getSeries(request: SeriesRequest = {}): Promise<Series> {
    return refusing(getSeries(this.#context, request));
  }

  getScaling(): Promise<Scaling> {
    return refusing(this.scaler.getScaling());
  }

  listDeadLetters(filter: DeadLetterFilter, page: ListRequest = {}): Promise<DeadLetterPage> {
    return this.#list((db, now) => listDeadLetters(db, filter, page, now));
  }

  replayDeadLetters(
    filter: DeadLetterFilter,
    request: DeadLetterReplay = {},
  ): Promise<ReplayedDeadLetters> {
    return refusing(this.#parts.replay.replayDeadLetters(filter, request));
  }

  analyseDeadLetters(within = unconfined): Promise<readonly DeadLetterPattern[]> {
    const key = JSON.stringify(within);
    const { reads } = this.#context.db;
    const analysis =
      this.#analyses.get(key) ?? new Cached(lookedAtForMs, () => analyseDeadLetters(reads, within));
    this.#analyses.delete(key);
    this.#analyses.set(key, analysis);
    const [oldest] = this.#analyses.keys();
    if (oldest !== undefined && this.#analyses.size > maxAnalyses) this.#analyses.delete(oldest);
    return refusing(analysis.get());
  }

  /** First what it defines: when that fails, no worker is left that nobody knows of. */
  async register(registration: Registration): Promise<Registered> {
    const notes = await refusing(this.#parts.types.define(registration));
    const registered = await refusing(this.#parts.fleet.register(registration));
    return notes.length === 0 ? registered : { ...registered, notes };
  }

  listTaskTypes(page: PageRequest = {}, within = unconfined): Promise<Page<ListedTaskType>> {
    return refusing(this.#parts.types.listTaskTypes(page, within));
  }

  getTaskType(taskType: string, within = unconfined): Promise<TaskTypeView> {
    return refusing(this.#parts.types.getTaskType(taskType, within));
  }

  poll(workerId: WorkerId, request: PollRequest, signal?: AbortSignal): Promise<PollAnswer> {
    return refusing(this.#parts.poll.poll(workerId, request, signal));
  }

  start(_workerId: WorkerId, held: Held): Promise<void> {
    return this.#parts.attempts.start(held);
  }

  async progress(
    _workerId: WorkerId,
    held: Held,
    progress: { readonly percent: number; readonly message?: string },
  ): Promise<void> {
    const { taskId, lease } = held;
    const { percent, message = null } = progress;
    await this.#parts.attempts.progress({ taskId, lease, percent, message });
  }

  async report(
    workerId: WorkerId,
    reports: readonly WorkerReport[],
  ): Promise<readonly ReportAnswer[]> {
    this.#context.payloads?.reported(reports);
    const answers = await this.#parts.report.report(workerId, reports);
    await refusing(
      this.#parts.attempts.letGo(reports.filter((_, index) => !answers[index]?.accepted)),
    );
    return answers;
  }

  async release(workerId: WorkerId, held: readonly Held[]): ReturnType<WorkerApi['release']> {
    const answer = await this.#parts.attempts.release(held);
    this.#parts.bench.giveBack(workerId, answer.released.length);
    return answer;
  }

  heartbeat(workerId: WorkerId, beat: Beat): Promise<HeartbeatAnswer> {
    return refusing(this.#parts.heartbeat.heartbeat(workerId, beat));
  }

  deregister(workerId: WorkerId): Promise<void> {
    return refusing(this.#parts.heartbeat.deregister(workerId));
  }

  listWorkers(page: PageRequest = {}): Promise<Page<WorkerView>> {
    return refusing(listWorkers(this.#context.db.reads, page));
  }

  getWorker(workerId: WorkerId): Promise<WorkerView> {
    return this.#findWorker(this.#context.db.reads, workerId);
  }

  async #findWorker(db: Queryable, workerId: WorkerId): Promise<WorkerView> {
    const worker = await refusing(findWorker(db, workerId));
    if (worker === null) {
      throw new SluiceError('worker_not_found', `There is no worker ${workerId}.`);
    }
    return worker;
  }

  createKey(draft: KeyDraft): Promise<CreatedKey> {
    return refusing(this.keys.createKey(draft));
  }

  listKeys(page: PageRequest = {}): Promise<Page<KeyView>> {
    return refusing(this.keys.listKeys(page));
  }

  revokeKey(id: string): Promise<KeyView> {
    return refusing(this.keys.revokeKey(id));
  }

  listSessions(keyId: string): Promise<readonly SessionView[]> {
    return refusing(this.keys.listSessions(keyId));
  }

  endSession(keyId: string, sessionId: string): Promise<SessionView> {
    return refusing(this.keys.endSession(keyId, sessionId));
  }

  async drainWorker(workerId: WorkerId): Promise<WorkerView> {
    const known = await refusing(requestDrain(this.#context.db, workerId));
    if (!known) throw new SluiceError('worker_not_found', `There is no worker ${workerId}.`);
    this.#parts.news.tell({ kind: 'draining', workerId });
    return this.#findWorker(this.#context.db, workerId);
  }

  #list<Listed>(read: (db: Queryable, now: Instant) => Promise<Listed>): Promise<Listed> {
    const { answers, db } = this.#context;
    const now = instant(this.#context);
    return refusing(answers.within(bounds.answerBytes, () => read(db.reads, now)));
  }
}

async function refusing<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw asRefusal(error);
  }
}
