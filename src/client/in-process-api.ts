import { SluiceError } from '../domain/errors.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { AlertDraft, AlertFilter, AlertSilence } from '../protocol/alerts-api.js';
import type { Person, ProgramsApi } from '../protocol/api.js';
import type { AuditFilter } from '../protocol/audit-api.js';
import { auditFields } from '../protocol/audit-wire.js';
import type {
  BulkReplay,
  BulkReprioritise,
  BulkRequest,
  TaskCountRequest,
} from '../protocol/bulk-api.js';
import { replayTasksFields } from '../protocol/bulk-wire.js';
import type { CalledApi } from '../protocol/called-api.js';
import { anybody, type Caller } from '../protocol/caller.js';
import { taskIdFromWire, workerIdFromWire } from '../protocol/common-wire.js';
import type { DeadLetterFilter, DeadLetterReplay } from '../protocol/dead-letters-api.js';
import { deadLetterFilterFields, deadLetterReplayFields } from '../protocol/dead-letters-wire.js';
import { isPlainlyRight, readDraft } from '../protocol/draft-check.js';
import { callersRefusal, inCallersNames, refuseUnknown } from '../protocol/fields.js';
import type { KeyDraft } from '../protocol/keys-api.js';
import { keyDraftFields } from '../protocol/keys-wire.js';
import type { PageRequest } from '../protocol/page.js';
import { checkId, checkName, checkPerson, checkText } from '../protocol/values.js';
import { refusalOf } from '../protocol/problem-wire.js';
import type { QueueChange, QueueDraft, RateLimitDraft } from '../protocol/queues-api.js';
import { queueFields, rateFields } from '../protocol/queues-wire.js';
import {
  readAlertDraft,
  readAlertFilter,
  readAlertSilence,
  readAuditList,
  readCancelTasks,
  readDeadLetterList,
  readDeadLetterReplay,
  readKeyDraft,
  readPage,
  readPause,
  readQueueChange,
  readQueueDraft,
  readRateLimit,
  readRegistration,
  readReplay,
  readReplayTasks,
  readReprioritiseTasks,
  readSeriesRequest,
  readTaskChange,
  readTaskCount,
  readTaskList,
} from '../protocol/strict-requests.js';
import type { SeriesRequest } from '../protocol/series-api.js';
import { seriesFields } from '../protocol/series-wire.js';
import type {
  ListRequest,
  ReplayRequest,
  SubmitOutcome,
  TaskChange,
  TaskDraft,
  TaskFilter,
  TaskSearch,
} from '../protocol/tasks-api.js';
import { draftFields, taskChangeFields } from '../protocol/tasks-wire.js';
import type {
  Heartbeat,
  Held,
  PollRequest,
  Registration,
  Report,
} from '../protocol/workers-api.js';
import { registrationFields } from '../protocol/workers-wire.js';

/**
 * The engine in this process, as strict as HTTP: what a program gives is checked by the same schemas, and refused
 * with the same code, in the names of TypeScript. What a worker sends by itself is not checked again.
 */
export class InProcessApi implements ProgramsApi {
  readonly #engine: CalledApi;
  readonly #caller: Caller;

  constructor(engine: CalledApi, caller = anybody) {
    this.#engine = engine;
    this.#caller = caller;
  }

  onBehalfOf({ name, address = null }: Person): InProcessApi {
    const actor = { ...anybody.actor, address, onBehalfOf: checkPerson('/name', name) };
    return new InProcessApi(this.#engine, { ...anybody, actor });
  }

  async submit(draft: TaskDraft, caller?: Caller) {
    const read = readDraft(draft);
    return inCallersNames(draftFields, () => this.#engine.submit(read, caller));
  }

  async submitMany(
    drafts: readonly TaskDraft[],
    caller?: Caller,
  ): Promise<readonly SubmitOutcome[]> {
    if (!drafts.every(isPlainlyRight)) return this.#submitRead(drafts.map(tryRead), caller);
    const outcomes = await this.#engine.submitMany(drafts, caller);
    return outcomes.some(hasErrors) ? outcomes.map(inOwnNames) : outcomes;
  }

  async #submitRead(
    read: readonly (TaskDraft | Refused)[],
    caller: Caller | undefined,
  ): Promise<readonly SubmitOutcome[]> {
    const outcomes = await this.#engine.submitMany(read.filter(isDraft), caller);
    const answers = outcomes.values();
    return read.flatMap((one) => {
      if (!isDraft(one)) return [one];
      const { value } = answers.next();
      return value === undefined ? [] : [inOwnNames(value)];
    });
  }

  async getTask(taskId: TaskId, options: { readonly history?: boolean } = {}) {
    refuseUnknown({ history: 'history' }, options);
    return this.#engine.getTask(idOf(taskId), options);
  }

  async waitForTask(taskId: TaskId, timeoutMs: number, signal?: AbortSignal) {
    return this.#engine.waitForTask(idOf(taskId), timeoutMs, signal);
  }

  async explainTask(taskId: TaskId) {
    return this.#engine.explainTask(idOf(taskId));
  }

  async listTasks(filter: TaskSearch, page: ListRequest = {}) {
    return this.#engine.listTasks(...readTaskList([filter, page]));
  }

  async cancelTask(taskId: TaskId) {
    return this.#engine.cancelTask(idOf(taskId), this.#caller);
  }

  async countTasks(filter: TaskFilter, request: TaskCountRequest = {}) {
    return this.#engine.countTasks(...readTaskCount([filter, request]));
  }

  async cancelTasks(filter: TaskFilter, request: BulkRequest = {}) {
    return this.#engine.cancelTasks(...readCancelTasks([filter, request]), this.#caller);
  }

  async replayTasks(filter: TaskFilter, request: BulkReplay = {}) {
    const read = readReplayTasks([filter, request]);
    return inCallersNames(replayTasksFields, () => this.#engine.replayTasks(...read, this.#caller));
  }

  async reprioritiseTasks(filter: TaskFilter, request: BulkReprioritise) {
    return this.#engine.reprioritiseTasks(
      ...readReprioritiseTasks([filter, request]),
      this.#caller,
    );
  }

  async changeTask(taskId: TaskId, change: TaskChange) {
    const read = readTaskChange(change);
    return inCallersNames(taskChangeFields, () =>
      this.#engine.changeTask(idOf(taskId), read, this.#caller),
    );
  }

  async replayTask(taskId: TaskId, request: ReplayRequest = {}) {
    return this.#engine.replayTask(idOf(taskId), readReplay(request), this.#caller);
  }

  async listTaskTypes(page: PageRequest = {}) {
    return this.#engine.listTaskTypes(readPage(page));
  }

  async getTaskType(taskType: string) {
    return this.#engine.getTaskType(checkName('/taskType', taskType));
  }

  async listQueues(page: PageRequest = {}) {
    return this.#engine.listQueues(readPage(page));
  }

  async getQueue(name: string) {
    return this.#engine.getQueue(checkName('/name', name));
  }

  async getForecast(queue: string) {
    return this.#engine.getForecast(checkName('/queue', queue));
  }

  async listPushbacks(queue: string, page: PageRequest = {}) {
    return this.#engine.listPushbacks(checkName('/queue', queue), readPage(page));
  }

  async putQueue(name: string, draft: QueueDraft) {
    const read = readQueueDraft(draft);
    return inCallersNames(queueFields, () =>
      this.#engine.putQueue(checkName('/name', name), read, this.#caller),
    );
  }

  async changeQueue(name: string, change: QueueChange) {
    const read = readQueueChange(change);
    return inCallersNames(queueFields, () =>
      this.#engine.changeQueue(checkName('/name', name), read, this.#caller),
    );
  }

  async pauseQueue(name: string, until?: Date) {
    return this.#engine.pauseQueue(checkName('/name', name), readPause(until), this.#caller);
  }

  async resumeQueue(name: string) {
    return this.#engine.resumeQueue(checkName('/name', name), this.#caller);
  }

  async listLimits() {
    return this.#engine.listLimits();
  }

  async getLimit(name: string) {
    return this.#engine.getLimit(checkName('/name', name));
  }

  async putLimit(name: string, limit: RateLimitDraft) {
    const read = readRateLimit(limit);
    return inCallersNames(rateFields, () =>
      this.#engine.putLimit(checkName('/name', name), read, this.#caller),
    );
  }

  async deleteLimit(name: string) {
    return this.#engine.deleteLimit(checkName('/name', name), this.#caller);
  }

  async listDeadLetters(filter: DeadLetterFilter, page: ListRequest = {}) {
    return this.#engine.listDeadLetters(...readDeadLetterList([filter, page]));
  }

  async replayDeadLetters(filter: DeadLetterFilter, request: DeadLetterReplay = {}) {
    const read = readDeadLetterReplay([filter, request]);
    return inCallersNames({ ...deadLetterFilterFields, ...deadLetterReplayFields }, () =>
      this.#engine.replayDeadLetters(...read, this.#caller),
    );
  }

  async analyseDeadLetters() {
    return this.#engine.analyseDeadLetters();
  }

  async getStatistics() {
    return this.#engine.getStatistics();
  }

  async getAttention() {
    return this.#engine.getAttention();
  }

  async getSeries(request: SeriesRequest = {}) {
    const read = readSeriesRequest(request);
    return inCallersNames(seriesFields, () => this.#engine.getSeries(read));
  }

  async getScaling() {
    return this.#engine.getScaling();
  }

  async listAlerts(filter: AlertFilter = {}) {
    return this.#engine.listAlerts(readAlertFilter(filter));
  }

  async putAlert(name: string, draft: AlertDraft) {
    return this.#engine.putAlert(checkName('/name', name), readAlertDraft(draft), this.#caller);
  }

  async silenceAlert(name: string, silence: AlertSilence) {
    return this.#engine.silenceAlert(
      checkName('/name', name),
      readAlertSilence(silence),
      this.#caller,
    );
  }

  async createKey(draft: KeyDraft) {
    const read = readKeyDraft(draft);
    return inCallersNames(keyDraftFields, () => this.#engine.createKey(read, this.#caller));
  }

  async listKeys(page: PageRequest = {}) {
    return this.#engine.listKeys(readPage(page));
  }

  async revokeKey(id: string) {
    return this.#engine.revokeKey(checkText('/id', id), this.#caller);
  }

  async listSessions(keyId: string) {
    return this.#engine.listSessions(checkText('/keyId', keyId));
  }

  async endSession(keyId: string, sessionId: string) {
    return this.#engine.endSession(
      checkText('/keyId', keyId),
      checkText('/sessionId', sessionId),
      this.#caller,
    );
  }

  async listAudit(filter: AuditFilter = {}, page: PageRequest = {}) {
    const read = readAuditList([filter, page]);
    return inCallersNames(auditFields, () => this.#engine.listAudit(...read));
  }

  async listWorkers(page: PageRequest = {}) {
    return this.#engine.listWorkers(readPage(page));
  }

  async getWorker(workerId: WorkerId) {
    return this.#engine.getWorker(workerIdOf(workerId));
  }

  async drainWorker(workerId: WorkerId) {
    return this.#engine.drainWorker(workerIdOf(workerId), this.#caller);
  }

  async register(registration: Registration) {
    const read = readRegistration(registration);
    return inCallersNames(registrationFields, () => this.#engine.register(read));
  }

  poll(workerId: WorkerId, request: PollRequest, signal?: AbortSignal) {
    return this.#engine.poll(workerId, request, signal);
  }

  start(workerId: WorkerId, held: Held) {
    return this.#engine.start(workerId, held);
  }

  progress(
    workerId: WorkerId,
    held: Held,
    progress: { readonly percent: number; readonly message?: string },
  ) {
    return this.#engine.progress(workerId, held, progress);
  }

  report(workerId: WorkerId, reports: readonly Report[]) {
    return this.#engine.report(workerId, reports);
  }

  release(workerId: WorkerId, held: readonly Held[]) {
    return this.#engine.release(workerId, held);
  }

  heartbeat(workerId: WorkerId, beat: Heartbeat) {
    return this.#engine.heartbeat(workerId, beat);
  }

  deregister(workerId: WorkerId) {
    return this.#engine.deregister(workerId);
  }
}

type Refused = Extract<SubmitOutcome, { kind: 'refused' }>;

/** One that is refused does not sink the rest. */
function tryRead(draft: TaskDraft): TaskDraft | Refused {
  try {
    return readDraft(draft);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { kind: 'refused', ...refusalOf(error) };
  }
}

function isDraft(read: TaskDraft | Refused): read is TaskDraft {
  return !('kind' in read);
}

function hasErrors(outcome: SubmitOutcome): boolean {
  return outcome.kind === 'refused' && outcome.errors !== undefined;
}

function inOwnNames(outcome: SubmitOutcome): SubmitOutcome {
  return outcome.kind === 'refused' ? callersRefusal(draftFields, outcome) : outcome;
}

function idOf(taskId: TaskId): TaskId {
  return taskIdFromWire(checkId('/taskId', taskId));
}

function workerIdOf(workerId: WorkerId): WorkerId {
  return workerIdFromWire(checkId('/workerId', workerId));
}
