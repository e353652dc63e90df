import type { AlertSnapshot } from '../domain/alerts/snapshot.js';
import type { AuditAction } from '../domain/audit.js';
import { unconfined, type Confinement } from '../domain/confinement.js';
import { SluiceError } from '../domain/errors.js';
import { instantOf, type TaskId, type WorkerId } from '../domain/ids.js';
import type { Priority } from '../domain/priority.js';
import type { SluiceApi } from '../protocol/api.js';
import type {
  AlertDraft,
  AlertFilter,
  AlertList,
  AlertSilence,
  AlertView,
} from '../protocol/alerts-api.js';
import { bounds } from '../protocol/bounds.js';
import type { AuditEntry, AuditFilter } from '../protocol/audit-api.js';
import type {
  BulkReplay,
  BulkReprioritise,
  BulkRequest,
  CancelledTasks,
  ReprioritisedTasks,
  TaskCount,
  TaskCountRequest,
} from '../protocol/bulk-api.js';
import { anybody, type Caller } from '../protocol/caller.js';
import type {
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterPattern,
  DeadLetterReplay,
  ReplayedDeadLetters,
} from '../protocol/dead-letters-api.js';
import { deadLetterFilterToWire } from '../protocol/dead-letters-wire.js';
import { defined } from '../protocol/defined.js';
import type { TaskEvent } from '../protocol/events.js';
import type { QueueForecast } from '../protocol/forecast-api.js';
import type { CreatedKey, KeyDraft, KeyView, SessionView } from '../protocol/keys-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type { Pushback } from '../protocol/pushbacks-api.js';
import type {
  LimitView,
  QueueChange,
  QueueDraft,
  QueueView,
  RateLimitDraft,
} from '../protocol/queues-api.js';
import type { Scaling } from '../protocol/scaling-api.js';
import type { Series, SeriesRequest } from '../protocol/series-api.js';
import type { Attention, Statistics } from '../protocol/statistics-api.js';
import type { ListedTaskType, TaskTypeView } from '../protocol/task-types-api.js';
import type {
  Cancellation,
  Explanation,
  ListRequest,
  Receipt,
  ReplayRequest,
  SubmitOutcome,
  TaskApi,
  TaskDraft,
  TaskFilter,
  TaskPage,
  TaskSearch,
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
  WorkerDetail,
  WorkerView,
} from '../protocol/workers-api.js';
import { taskFilterToWire } from '../protocol/tasks-wire.js';
import { listAudit } from '../store/audit.js';
import type { MailFlow } from '../ready/forwarded/replica-ready-queue.js';
import type { AnswerBudget } from './answer-budget.js';
import { listDeadLetters } from '../store/dead-letters.js';
import type { Instant, Queryable } from '../store/database.js';
import { countTasks } from '../store/count-tasks.js';
import { listTasks } from '../store/list-tasks.js';
import { searchBudgetOf } from '../store/search-text.js';
import { decodeIdCursor, encodeCursor } from '../store/paging.js';
import { findWorker, listWorkers, requestDrain } from '../store/workers.js';
import type { ApiKeys } from './api-keys.js';
import { findAttention } from './attention.js';
import type { Recorded } from './audit.js';
import { Cached } from './cached.js';
import type { Follower, Following } from './cluster-events.js';
import { asRefusal, instant, patiently, type EngineContext } from './context.js';
import { joinParts, type EngineParts } from './engine-parts.js';
import type { Measurements } from './measurements.js';
import type { Scaler } from './scaler.js';
import type { LeadershipView } from './leadership.js';
import type { Role } from './serving.js';
import { getSeries } from './series.js';
import { getStatistics } from './statistics.js';
import type { Tallies } from './tallies.js';
import { WaitingQueues } from './waiting-queues.js';
import type { WebhookOutbox } from './webhook-outbox.js';

/** What counts many tasks is computed once in so long, however many callers ask. */
const lookedAtForMs = 1_000;
/** By one poll of a worker whose key is confined; the next ones ask for the others. */
const maxQueuesPolled = 1_000;

/** The use cases, joined: everything that can be asked of Sluice, in this process. */
export class Engine implements SluiceApi {
  /** Who may call over HTTP. Whoever serves it has them watched. */
  readonly keys: ApiKeys;
  /** How many workers there should be, for whoever starts them. */
  readonly scaler: Scaler;
  /** Messages for webhooks, for whoever sends them. */
  readonly outbox: WebhookOutbox;
  readonly #context: EngineContext;
  readonly #parts: EngineParts;
  readonly #statistics: Cached<Statistics>;
  readonly #attention: Cached<Attention>;
  readonly #waitingQueues: WaitingQueues;
  #closing: Promise<void> | null = null;

  constructor(context: EngineContext, role: Role) {
    this.#context = context;
    this.#parts = joinParts(context, role, { isClosing: () => this.#closing !== null });
    this.keys = this.#parts.keys;
    const { line, counters, admission } = this.#parts;
    this.#statistics = new Cached(lookedAtForMs, () =>
      getStatistics(context, line, counters, admission),
    );
    this.#attention = new Cached(lookedAtForMs, () => findAttention(context, this.#parts));
    this.#waitingQueues = new WaitingQueues(context.db, {
      maxNames: maxQueuesPolled,
      freshForMs: lookedAtForMs,
    });
    this.scaler = this.#parts.scaler;
    this.outbox = this.#parts.outbox;
  }

  /** Resolves when this process serves, or knows that it can't. */
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

  /** The server in front refused a submit before it was read. */
  noteShed(): void {
    this.#parts.submit.noteShed();
  }

  /** For the metrics. */
  get measurements(): Measurements {
    return this.#parts.measurements;
  }

  get tallies(): Tallies {
    return this.#parts.tallies;
  }

  subscribe(listener: (event: TaskEvent) => void): () => void {
    return this.#context.events.subscribe(listener);
  }

  /** Events of all servers, for people. */
  follow(follower: Follower): Following {
    return this.#parts.clusterEvents.follow(follower);
  }

  /** Null where no process leads others: embedded, or with Redis. */
  get leadership(): LeadershipView | null {
    return this.#parts.serving.leadership.view;
  }

  /** Null where no mail is sent. */
  get mailFlow(): MailFlow | null {
    return this.#context.replicas?.flow ?? null;
  }

  /** Before `close`, when calls are still answered for a while: another process may lead now. */
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
    this.#context.transitions?.close();
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

  explainTask(taskId: TaskId, within = unconfined): Promise<Explanation> {
    return refusing(this.#parts.explain.explainTask(taskId, within));
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
    const { fleet } = this.#parts;
    const worker = await refusing(fleet.get(workerId));
    return (await refusing(fleet.offerOf(worker))).queues ?? null;
  }

  /** Those that it reaches and that have tasks; when there are very many, others each time. */
  findWaitingQueues(within: Confinement): Promise<readonly string[]> {
    return refusing(this.#waitingQueues.find(within));
  }

  listTasks(filter: TaskSearch, page: ListRequest = {}): Promise<TaskPage> {
    const budget = searchBudgetOf(this.#context.db);
    return this.#list((db, now) => listTasks(db, filter, page, now, budget));
  }

  async cancelTask(taskId: TaskId, caller = anybody): Promise<Cancellation> {
    const answer = await refusing(this.#parts.cancel.cancelTask(taskId));
    await this.#recordOne(caller, { action: 'task.cancel', subject: taskId });
    return answer;
  }

  async countTasks(filter: TaskFilter, request: TaskCountRequest = {}): Promise<TaskCount> {
    const { action, cursor } = request;
    const before = cursor === undefined ? undefined : decodeIdCursor(cursor);
    const { reads } = this.#context.db;
    const { count, scanned, next } = await refusing(countTasks(reads, filter, action, before));
    return {
      count,
      // How many tasks of others there are is not for a confined caller.
      scanned: filter.within === undefined ? scanned : count,
      searchedBackTo: next === null ? null : new Date(instantOf(next)),
      nextCursor: next === null ? null : encodeCursor(next),
    };
  }

  async cancelTasks(
    filter: TaskFilter,
    request: BulkRequest = {},
    caller = anybody,
  ): Promise<CancelledTasks> {
    const answer = await refusing(this.#parts.cancel.cancelTasks(filter, request));
    await this.#recordBulk(caller, 'tasks.cancel', filter, {
      count: answer.cancelled,
      isFirst: request.cursor === undefined,
    });
    return answer;
  }

  async replayTasks(
    filter: TaskFilter,
    request: BulkReplay = {},
    caller = anybody,
  ): Promise<ReplayedDeadLetters> {
    const answer = await refusing(this.#parts.replay.replayTasks(filter, request));
    await this.#recordBulk(caller, 'tasks.replay', filter, {
      count: answer.replayed,
      isFirst: request.cursor === undefined,
      ...(request.newPriority === undefined ? {} : { newPriority: request.newPriority }),
    });
    return answer;
  }

  async reprioritiseTasks(
    filter: TaskFilter,
    request: BulkReprioritise,
    caller = anybody,
  ): Promise<ReprioritisedTasks> {
    const answer = await refusing(this.#parts.replay.reprioritiseTasks(filter, request));
    await this.#recordBulk(caller, 'tasks.reprioritise', filter, {
      count: answer.reprioritised,
      isFirst: request.cursor === undefined,
      newPriority: request.newPriority,
    });
    return answer;
  }

  async changeTask(
    taskId: TaskId,
    change: Parameters<TaskApi['changeTask']>[1],
    caller = anybody,
  ): Promise<TaskView> {
    const { read, replay } = this.#parts;
    const task = await refusing(read.write(taskId, () => replay.changeTask(taskId, change)));
    const details = defined({ priority: change.priority, run_at: change.runAt?.toISOString() });
    await this.#recordOne(caller, { action: 'task.change', subject: taskId, details });
    return task;
  }

  async replayTask(
    taskId: TaskId,
    request: ReplayRequest = {},
    caller = anybody,
  ): Promise<TaskView> {
    const { read, replay } = this.#parts;
    const task = await refusing(read.write(taskId, () => replay.replayTask(taskId, request)));
    await this.#recordOne(caller, { action: 'task.replay', subject: taskId });
    return task;
  }

  listQueues(page: PageRequest = {}, within = unconfined): Promise<Page<QueueView>> {
    return refusing(this.#parts.queueControl.listQueues(page, within));
  }

  getQueue(name: string): Promise<QueueView> {
    return refusing(this.#parts.queueControl.getQueue(name));
  }

  getForecast(queue: string): Promise<QueueForecast> {
    return refusing(this.#parts.forecasts.getForecast(queue));
  }

  /** Refuses as for a queue that there is not, when there is none. */
  async listPushbacks(queue: string, page: PageRequest = {}): Promise<Page<Pushback>> {
    await this.getQueue(queue);
    return refusing(this.#parts.pushbacks.list(queue, page));
  }

  putQueue(name: string, draft: QueueDraft, caller = anybody): Promise<QueueView> {
    return refusing(this.#parts.queueControl.putQueue(name, draft, caller));
  }

  changeQueue(name: string, change: QueueChange, caller = anybody): Promise<QueueView> {
    return refusing(this.#parts.queueControl.changeQueue(name, change, caller));
  }

  pauseQueue(name: string, until?: Date, caller = anybody): Promise<QueueView> {
    return refusing(this.#parts.queueControl.pauseQueue(name, until, caller));
  }

  resumeQueue(name: string, caller = anybody): Promise<QueueView> {
    return refusing(this.#parts.queueControl.resumeQueue(name, caller));
  }

  listLimits(): Promise<readonly LimitView[]> {
    return refusing(this.#parts.queueControl.listLimits());
  }

  getLimit(name: string): Promise<LimitView> {
    return refusing(this.#parts.queueControl.getLimit(name));
  }

  putLimit(name: string, limit: RateLimitDraft, caller = anybody): Promise<LimitView> {
    return refusing(this.#parts.queueControl.putLimit(name, limit, caller));
  }

  deleteLimit(name: string, caller = anybody): Promise<void> {
    return refusing(this.#parts.queueControl.deleteLimit(name, caller));
  }

  getAttention(): Promise<Attention> {
    return refusing(this.#attention.get());
  }

  getStatistics(): Promise<Statistics> {
    return refusing(this.#statistics.get());
  }

  getSeries(request: SeriesRequest = {}): Promise<Series> {
    return refusing(getSeries(this.#context, this.#parts.counters, request));
  }

  getScaling(): Promise<Scaling> {
    return refusing(this.scaler.getScaling());
  }

  listAlerts(filter: AlertFilter = {}): Promise<AlertList> {
    return refusing(this.#parts.alerts.listAlerts(filter));
  }

  putAlert(name: string, draft: AlertDraft, caller = anybody): Promise<AlertView> {
    return refusing(this.#parts.alerts.putAlert(name, draft, caller));
  }

  silenceAlert(name: string, silence: AlertSilence, caller = anybody): Promise<AlertView> {
    return refusing(this.#parts.alerts.silenceAlert(name, silence, caller));
  }

  /** What the alert rules read, as measured last; null: no server evaluates alerts. */
  findAlertSnapshot(): Promise<AlertSnapshot | null> {
    return refusing(this.#parts.alerts.findSnapshot());
  }

  async listDeadLetters(filter: DeadLetterFilter, page: ListRequest = {}): Promise<DeadLetterPage> {
    if (filter.pattern !== undefined) await refusing(this.#parts.patterns.catchUp());
    return this.#list((db, now) => listDeadLetters(db, filter, page, now));
  }

  async replayDeadLetters(
    filter: DeadLetterFilter,
    request: DeadLetterReplay = {},
    caller = anybody,
  ): Promise<ReplayedDeadLetters> {
    if (filter.pattern !== undefined) await refusing(this.#parts.patterns.catchUp());
    const answer = await refusing(this.#parts.replay.replayDeadLetters(filter, request));
    const { within: _, ...asked } = filter;
    const details = { filter: { ...deadLetterFilterToWire(asked) }, count: answer.replayed };
    await this.#record(caller, { action: 'dead_letters.replay', details });
    return answer;
  }

  analyseDeadLetters(within = unconfined): Promise<readonly DeadLetterPattern[]> {
    return refusing(this.#parts.patterns.analyse(within));
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

  async start(_workerId: WorkerId, held: Held): Promise<void> {
    await this.#fenced('start', this.#parts.attempts.start(held));
  }

  async progress(
    _workerId: WorkerId,
    held: Held,
    progress: { readonly percent: number; readonly message?: string },
  ): Promise<void> {
    const { taskId, lease } = held;
    const { percent, message = null } = progress;
    await this.#fenced(
      'progress',
      this.#parts.attempts.progress({ taskId, lease, percent, message }),
    );
  }

  async report(
    workerId: WorkerId,
    reports: readonly WorkerReport[],
  ): Promise<readonly ReportAnswer[]> {
    this.#context.payloads?.reported(reports);
    const answers = await this.#parts.report.report(workerId, reports);
    const stale = reports.filter((_, index) => !answers[index]?.accepted);
    this.#parts.tallies.staleWrites.add('result', stale.length);
    await refusing(this.#parts.attempts.letGo(stale));
    return answers;
  }

  async release(workerId: WorkerId, held: readonly Held[]): ReturnType<WorkerApi['release']> {
    const answer = await this.#parts.attempts.release(held);
    this.#parts.bench.giveBack(workerId, answer.released.length);
    this.#parts.tallies.staleWrites.add('release', answer.lost.length);
    return answer;
  }

  async heartbeat(workerId: WorkerId, beat: Beat): Promise<HeartbeatAnswer> {
    try {
      return await refusing(this.#parts.heartbeat.heartbeat(workerId, beat));
    } catch (error) {
      const isUnknown = error instanceof SluiceError && error.code === 'worker_unknown';
      this.#parts.tallies.heartbeatFailures.add(isUnknown ? 'worker_unknown' : 'unavailable');
      throw error;
    }
  }

  deregister(workerId: WorkerId): Promise<void> {
    return refusing(this.#parts.heartbeat.deregister(workerId));
  }

  listWorkers(page: PageRequest = {}): Promise<Page<WorkerView>> {
    return refusing(listWorkers(this.#context.db.reads, page));
  }

  getWorker(workerId: WorkerId): Promise<WorkerDetail> {
    return this.#findWorker(this.#context.db.reads, workerId);
  }

  async #findWorker(db: Queryable, workerId: WorkerId): Promise<WorkerDetail> {
    const worker = await refusing(findWorker(db, workerId));
    if (worker === null) {
      throw new SluiceError('worker_not_found', `There is no worker ${workerId}.`);
    }
    return worker;
  }

  createKey(draft: KeyDraft, caller = anybody): Promise<CreatedKey> {
    return refusing(this.keys.createKey(draft, caller));
  }

  listKeys(page: PageRequest = {}): Promise<Page<KeyView>> {
    return refusing(this.keys.listKeys(page));
  }

  revokeKey(id: string, caller = anybody): Promise<KeyView> {
    return refusing(this.keys.revokeKey(id, caller));
  }

  listSessions(keyId: string): Promise<readonly SessionView[]> {
    return refusing(this.keys.listSessions(keyId));
  }

  endSession(keyId: string, sessionId: string, caller = anybody): Promise<SessionView> {
    return refusing(this.keys.endSession(keyId, sessionId, caller));
  }

  listAudit(filter: AuditFilter = {}, page: PageRequest = {}): Promise<Page<AuditEntry>> {
    return this.#list((db) => listAudit(db, filter, page));
  }

  async drainWorker(workerId: WorkerId, caller = anybody): Promise<WorkerView> {
    const write = async (tx: Queryable) => {
      const isKnown = await requestDrain(tx, workerId, instant(this.#context));
      const recorded = { action: 'worker.drain', subject: workerId } as const;
      if (isKnown) await this.#parts.audit.record(tx, caller, recorded);
      return isKnown;
    };
    const { db } = this.#context;
    const known = await refusing(patiently(() => db.transaction(write)));
    if (!known) throw new SluiceError('worker_not_found', `There is no worker ${workerId}.`);
    this.#parts.news.tell({ kind: 'draining', workerId });
    return this.#findWorker(this.#context.db, workerId);
  }

  async #fenced(operation: 'start' | 'progress', write: Promise<void>): Promise<void> {
    try {
      await write;
    } catch (error) {
      if (error instanceof SluiceError && error.code === 'lease_lost') {
        this.#parts.tallies.staleWrites.add(operation);
      }
      throw error;
    }
  }

  /** Programs change single tasks all the time; of people it is written down. */
  async #recordOne(caller: Caller, recorded: Recorded): Promise<void> {
    const { kind, onBehalfOf } = caller.actor;
    if (kind === 'session' || onBehalfOf !== undefined) await this.#record(caller, recorded);
  }

  /** A call that goes on where another one ended is written down when it changed something. */
  async #recordBulk(
    caller: Caller,
    action: AuditAction,
    { within: _, ...asked }: TaskFilter,
    done: { readonly count: number; readonly isFirst: boolean; readonly newPriority?: Priority },
  ): Promise<void> {
    const { count, isFirst, newPriority } = done;
    if (count === 0 && !isFirst) return;
    const how = newPriority === undefined ? {} : { new_priority: newPriority };
    const details = { filter: { ...taskFilterToWire(asked) }, ...how, count };
    await this.#record(caller, { action, details });
  }

  /** After the change, which is committed: it stays done when this fails. */
  async #record(caller: Caller, recorded: Recorded): Promise<void> {
    const { db, log } = this.#context;
    await this.#parts.audit.record(db, caller, recorded).catch((error: unknown) => {
      log.error({ err: error, ...recorded, actor: caller.actor }, 'the audit could not be written');
    });
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
