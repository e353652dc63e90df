import { hasEnded } from '../domain/task-state.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { ClientApi } from '../protocol/api.js';
import type {
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterPattern,
  DeadLetterReplay,
  ReplayedDeadLetters,
} from '../protocol/dead-letters-api.js';
import type { CreatedKey, KeyDraft, KeyView, SessionView } from '../protocol/keys-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type { LimitView, QueueChange, QueueView } from '../protocol/queues-api.js';
import type { Scaling } from '../protocol/scaling-api.js';
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
  TaskChange,
  TaskDraft,
  TaskFilter,
  TaskView,
} from '../protocol/tasks-api.js';
import type { WorkerView } from '../protocol/workers-api.js';
import type { RateLimit } from '../domain/queue-settings.js';
import { bounds } from '../protocol/bounds.js';
import { timestampToWire } from '../protocol/common-wire.js';
import { defined } from '../protocol/defined.js';
import type {
  DeadLetterAnalysisWire,
  DeadLetterPageWire,
  ReplayedWire,
} from '../protocol/dead-letters-schema.js';
import {
  deadLetterAnalysisFromWire,
  deadLetterFilterToWire,
  deadLetterPageFromWire,
  replayDeadLettersToWire,
  replayedFromWire,
} from '../protocol/dead-letters-wire.js';
import type {
  CreatedKeyWire,
  KeyPageWire,
  KeyWire,
  SessionListWire,
  SessionWire,
} from '../protocol/keys-schema.js';
import {
  createdKeyFromWire,
  keyDraftToWire,
  keyFromWire,
  keyPageFromWire,
  sessionFromWire,
} from '../protocol/keys-wire.js';
import type { LimitWire, QueuePageWire, QueueWire } from '../protocol/queues-schema.js';
import {
  limitFromWire,
  queueChangeToWire,
  queueFromWire,
  queuePageFromWire,
  rateLimitToWire,
} from '../protocol/queues-wire.js';
import type { ScalingWire } from '../protocol/scaling-schema.js';
import { scalingFromWire } from '../protocol/scaling-wire.js';
import type { StatisticsWire } from '../protocol/statistics-schema.js';
import { statisticsFromWire } from '../protocol/statistics-wire.js';
import type { TaskTypePageWire, TaskTypeWire } from '../protocol/task-types-schema.js';
import { taskTypeFromWire, taskTypePageFromWire } from '../protocol/task-types-wire.js';
import type {
  BatchAnswerWire,
  CancellationWire,
  ExplanationWire,
  ReceiptWire,
  TaskPageWire,
  TaskWire,
} from '../protocol/tasks-schema.js';
import {
  cancellationFromWire,
  explanationFromWire,
  includeToWire,
  receiptFromWire,
  replayToWire,
  submitOutcomesFromWire,
  taskChangeToWire,
  taskDraftToWire,
  taskFilterToWire,
  taskFromWire,
  taskPageFromWire,
} from '../protocol/tasks-wire.js';
import type { WorkerPageWire, WorkerWire } from '../protocol/workers-schema.js';
import { workerFromWire, workerPageFromWire } from '../protocol/workers-wire.js';
import { HttpTransport, type HttpOptions } from './http-transport.js';
import type { OpenSender } from './send.js';

export type HttpApiOptions = HttpOptions;

/** What clients ask for, over HTTP. Refuses with the same `SluiceError`s as the engine does in-process. */
export class HttpApi implements ClientApi {
  readonly #http: HttpTransport;

  constructor(url: string, options: HttpApiOptions, openSender: OpenSender) {
    this.#http = new HttpTransport(url, options, openSender);
  }

  protected get http(): HttpTransport {
    return this.#http;
  }

  async submit(draft: TaskDraft): Promise<Receipt> {
    const body = taskDraftToWire(draft);
    const { status, answer } = await this.#http.exchange<ReceiptWire>('POST', '/api/v1/tasks', {
      body,
    });
    return receiptFromWire(answer, status === 201);
  }

  /** In as many requests as their number and size need. */
  async submitMany(drafts: readonly TaskDraft[]): Promise<readonly SubmitOutcome[]> {
    const outcomes: SubmitOutcome[] = [];
    for (const tasks of splitBatch(drafts)) {
      const answer = await this.#http.post<BatchAnswerWire>(
        '/api/v1/tasks/batch',
        `{"tasks":[${tasks.join(',')}]}`,
      );
      outcomes.push(...submitOutcomesFromWire(answer));
    }
    return outcomes;
  }

  async getTask(taskId: TaskId, options: { readonly history?: boolean } = {}): Promise<TaskView> {
    const query = options.history === true ? { include: 'history' } : {};
    return taskFromWire(await this.#http.get<TaskWire>(taskPath(taskId), query));
  }

  /** Waits longer than one request may: it asks again until the time is over. */
  async waitForTask(taskId: TaskId, timeoutMs: number, signal?: AbortSignal): Promise<TaskView> {
    const endsAtMs = performance.now() + timeoutMs;
    for (;;) {
      const leftSeconds = Math.ceil((endsAtMs - performance.now()) / 1000);
      const waitSeconds = Math.min(Math.max(leftSeconds, 0), bounds.waitSeconds);
      const task = taskFromWire(
        await this.#http.get<TaskWire>(
          `${taskPath(taskId)}/wait`,
          { timeout_seconds: String(waitSeconds) },
          { waitMs: waitSeconds * 1000, signal },
        ),
      );
      if (hasEnded(task.status) || performance.now() >= endsAtMs) return task;
    }
  }

  async explainTask(taskId: TaskId): Promise<Explanation> {
    return explanationFromWire(
      await this.#http.get<ExplanationWire>(`${taskPath(taskId)}/explain`),
    );
  }

  async listTasks(filter: TaskFilter, page: ListRequest = {}): Promise<Page<ListedTask>> {
    const query = { ...taskFilterToWire(filter), ...listQuery(page) };
    return taskPageFromWire(await this.#http.get<TaskPageWire>('/api/v1/tasks', query));
  }

  async cancelTask(taskId: TaskId): Promise<Cancellation> {
    const { answer } = await this.#http.exchange<CancellationWire>('DELETE', taskPath(taskId));
    return cancellationFromWire(answer);
  }

  async cancelTasks(filter: TaskFilter): Promise<{ readonly cancelled: number }> {
    return this.#http.post('/api/v1/tasks/cancel', taskFilterToWire(filter));
  }

  async changeTask(taskId: TaskId, change: TaskChange): Promise<TaskView | Receipt> {
    const body = taskChangeToWire(change);
    const { answer } = await this.#http.exchange<TaskWire | ReceiptWire>(
      'PATCH',
      taskPath(taskId),
      {
        body,
      },
    );
    return 'parameters' in answer ? taskFromWire(answer) : receiptFromWire(answer, false);
  }

  async replayTask(taskId: TaskId, request: ReplayRequest = {}): Promise<TaskView> {
    return taskFromWire(
      await this.#http.post<TaskWire>(`${taskPath(taskId)}/replay`, replayToWire(request)),
    );
  }

  async listTaskTypes(page: PageRequest = {}): Promise<Page<ListedTaskType>> {
    return taskTypePageFromWire(
      await this.#http.get<TaskTypePageWire>('/api/v1/task-types', pageQuery(page)),
    );
  }

  async getTaskType(taskType: string): Promise<TaskTypeView> {
    const path = `/api/v1/task-types/${encodeURIComponent(taskType)}`;
    return taskTypeFromWire(await this.#http.get<TaskTypeWire>(path));
  }

  async listQueues(page: PageRequest = {}): Promise<Page<QueueView>> {
    return queuePageFromWire(
      await this.#http.get<QueuePageWire>('/api/v1/queues', pageQuery(page)),
    );
  }

  async getQueue(name: string): Promise<QueueView> {
    return queueFromWire(await this.#http.get<QueueWire>(queuePath(name)));
  }

  async putQueue(name: string, change: QueueChange): Promise<QueueView> {
    return queueFromWire(
      await this.#http.put<QueueWire>(queuePath(name), queueChangeToWire(change)),
    );
  }

  async pauseQueue(name: string, until?: Date): Promise<QueueView> {
    const body = until === undefined ? {} : { until: timestampToWire(until) };
    return queueFromWire(await this.#http.post<QueueWire>(`${queuePath(name)}/pause`, body));
  }

  async resumeQueue(name: string): Promise<QueueView> {
    return queueFromWire(await this.#http.post<QueueWire>(`${queuePath(name)}/resume`, {}));
  }

  async listLimits(): Promise<readonly LimitView[]> {
    const { items } = await this.#http.get<{ items: LimitWire[] }>('/api/v1/limits');
    return items.map(limitFromWire);
  }

  async getLimit(name: string): Promise<LimitView> {
    return limitFromWire(await this.#http.get<LimitWire>(limitPath(name)));
  }

  async putLimit(name: string, limit: RateLimit): Promise<LimitView> {
    return limitFromWire(await this.#http.put<LimitWire>(limitPath(name), rateLimitToWire(limit)));
  }

  async deleteLimit(name: string): Promise<void> {
    await this.#http.exchange('DELETE', limitPath(name));
  }

  async getStatistics(): Promise<Statistics> {
    return statisticsFromWire(await this.#http.get<StatisticsWire>('/api/v1/queue/stats'));
  }

  async getScaling(): Promise<Scaling> {
    return scalingFromWire(await this.#http.get<ScalingWire>('/api/v1/scaling'));
  }

  async listDeadLetters(filter: DeadLetterFilter, page: ListRequest = {}): Promise<DeadLetterPage> {
    const query = { ...deadLetterFilterToWire(filter), ...listQuery(page) };
    return deadLetterPageFromWire(await this.#http.get<DeadLetterPageWire>('/api/v1/dlq', query));
  }

  async replayDeadLetters(
    filter: DeadLetterFilter,
    request: DeadLetterReplay = {},
  ): Promise<ReplayedDeadLetters> {
    const body = replayDeadLettersToWire(filter, request);
    return replayedFromWire(await this.#http.post<ReplayedWire>('/api/v1/dlq/replay', body));
  }

  async analyseDeadLetters(): Promise<readonly DeadLetterPattern[]> {
    return deadLetterAnalysisFromWire(
      await this.#http.get<DeadLetterAnalysisWire>('/api/v1/dlq/analysis'),
    );
  }

  async listWorkers(page: PageRequest = {}): Promise<Page<WorkerView>> {
    return workerPageFromWire(
      await this.#http.get<WorkerPageWire>('/api/v1/workers', pageQuery(page)),
    );
  }

  async getWorker(workerId: WorkerId): Promise<WorkerView> {
    return workerFromWire(await this.#http.get<WorkerWire>(fleetPath(workerId)));
  }

  async drainWorker(workerId: WorkerId): Promise<WorkerView> {
    return workerFromWire(await this.#http.post<WorkerWire>(`${fleetPath(workerId)}/drain`, {}));
  }

  async createKey(draft: KeyDraft): Promise<CreatedKey> {
    return createdKeyFromWire(
      await this.#http.post<CreatedKeyWire>('/api/v1/keys', keyDraftToWire(draft)),
    );
  }

  async listKeys(page: PageRequest = {}): Promise<Page<KeyView>> {
    return keyPageFromWire(await this.#http.get<KeyPageWire>('/api/v1/keys', pageQuery(page)));
  }

  async revokeKey(id: string): Promise<KeyView> {
    const path = `/api/v1/keys/${encodeURIComponent(id)}`;
    return keyFromWire((await this.#http.exchange<KeyWire>('DELETE', path)).answer);
  }

  async listSessions(keyId: string): Promise<readonly SessionView[]> {
    const path = `/api/v1/keys/${encodeURIComponent(keyId)}/sessions`;
    return (await this.#http.get<SessionListWire>(path)).items.map(sessionFromWire);
  }

  async endSession(keyId: string, sessionId: string): Promise<SessionView> {
    const key = encodeURIComponent(keyId);
    const path = `/api/v1/keys/${key}/sessions/${encodeURIComponent(sessionId)}`;
    return sessionFromWire((await this.#http.exchange<SessionWire>('DELETE', path)).answer);
  }
}

/** The JSON of the drafts, in pieces that one request may carry. */
function* splitBatch(drafts: readonly TaskDraft[]): Generator<string[]> {
  // Characters, not bytes: a quarter of the limit holds even when each takes four.
  const maxCharacters = bounds.requestBytes / 4;
  let piece: string[] = [];
  let characters = 0;
  for (const draft of drafts) {
    const task = JSON.stringify(taskDraftToWire(draft));
    if (piece.length === bounds.batchSize || characters + task.length > maxCharacters) {
      if (piece.length > 0) yield piece;
      piece = [];
      characters = 0;
    }
    piece.push(task);
    characters += task.length + 1;
  }
  if (piece.length > 0) yield piece;
}

function listQuery({ include, ...page }: ListRequest): Record<string, string> {
  return { ...pageQuery(page), ...defined({ include: includeToWire(include) }) };
}

function pageQuery({ limit, cursor }: PageRequest): Record<string, string> {
  return {
    ...(limit === undefined ? {} : { limit: String(limit) }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

const taskPath = (taskId: TaskId): string => `/api/v1/tasks/${encodeURIComponent(taskId)}`;
const queuePath = (name: string): string => `/api/v1/queues/${encodeURIComponent(name)}`;
const limitPath = (name: string): string => `/api/v1/limits/${encodeURIComponent(name)}`;
const fleetPath = (workerId: WorkerId): string => `/api/v1/workers/${encodeURIComponent(workerId)}`;
