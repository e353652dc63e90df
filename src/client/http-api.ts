import { SluiceError } from '../domain/errors.js';
import { hasEnded } from '../domain/task-state.js';
import type { TaskId } from '../domain/ids.js';
import type { ClientApi } from '../protocol/api.js';
import type {
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterPattern,
  DeadLetterReplay,
  ReplayedDeadLetters,
} from '../protocol/dead-letters-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type {
  LimitView,
  QueueChange,
  QueueDraft,
  QueueView,
  RateLimitDraft,
} from '../protocol/queues-api.js';
import type { Statistics } from '../protocol/statistics-api.js';
import type {
  Cancellation,
  Explanation,
  ListRequest,
  Receipt,
  ReplayRequest,
  SubmitOutcome,
  TaskChange,
  TaskDraft,
  TaskFilter,
  TaskPage,
  TaskSearch,
  TaskView,
} from '../protocol/tasks-api.js';
import type {
  BulkReplay,
  BulkReprioritise,
  BulkRequest,
  CancelledTasks,
  ReprioritisedTasks,
  TaskCount,
  TaskCountRequest,
} from '../protocol/bulk-api.js';
import { bounds } from '../protocol/bounds.js';
import type { CancelledWire, ReprioritisedWire, TaskCountWire } from '../protocol/bulk-schema.js';
import {
  cancelledFromWire,
  cancelTasksFields,
  cancelTasksToWire,
  countTasksFields,
  countTasksToWire,
  replayTasksFields,
  replayTasksToWire,
  reprioritisedFromWire,
  reprioritiseTasksFields,
  reprioritiseTasksToWire,
  taskCountFromWire,
} from '../protocol/bulk-wire.js';
import type {
  DeadLetterAnalysisWire,
  DeadLetterPageWire,
  ReplayedWire,
} from '../protocol/dead-letters-schema.js';
import {
  deadLetterAnalysisFromWire,
  deadLetterFilterFields,
  deadLetterFilterToWire,
  deadLetterPageFromWire,
  deadLetterReplayFields,
  replayDeadLettersToWire,
  replayedFromWire,
} from '../protocol/dead-letters-wire.js';
import {
  callersRefusal,
  inCallersNames,
  refuseUnknown,
  timestampFieldToWire,
  writeRequest,
} from '../protocol/fields.js';
import { checkId, checkName } from '../protocol/values.js';
import { refusalOf } from '../protocol/problem-wire.js';
import type { LimitWire, QueuePageWire, QueueWire } from '../protocol/queues-schema.js';
import {
  limitFromWire,
  queueChangeToWire,
  queueDraftToWire,
  queueFields,
  queueFromWire,
  queuePageFromWire,
  rateFields,
  rateLimitDraftToWire,
} from '../protocol/queues-wire.js';
import type { StatisticsWire } from '../protocol/statistics-schema.js';
import { statisticsFromWire } from '../protocol/statistics-wire.js';
import type {
  BatchAnswerWire,
  CancellationWire,
  ExplanationWire,
  ReceiptWire,
  TaskDraftWire,
  TaskPageWire,
  TaskWire,
} from '../protocol/tasks-schema.js';
import {
  cancellationFromWire,
  draftFields,
  explanationFromWire,
  listFields,
  pageFields,
  receiptFromWire,
  replayFields,
  replayToWire,
  searchFields,
  submitOutcomesFromWire,
  taskChangeFields,
  taskChangeToWire,
  taskDraftToWire,
  taskFromWire,
  taskPageFromWire,
  taskSearchToWire,
} from '../protocol/tasks-wire.js';
import { HttpTransport, type HttpOptions } from './http-transport.js';
import type { OpenSender } from './send.js';
import { checkServerUrl } from './server-url.js';

export type HttpApiOptions = HttpOptions;

/** What clients ask for, over HTTP. Refuses with the same `SluiceError`s as the engine does in-process. */
export class HttpApi implements ClientApi {
  readonly #http: HttpTransport;

  constructor(url: string, options: HttpApiOptions, openSender: OpenSender) {
    checkServerUrl(url);
    this.#http = new HttpTransport(url, options, openSender);
  }

  protected get http(): HttpTransport {
    return this.#http;
  }

  async submit(draft: TaskDraft): Promise<Receipt> {
    const body = taskDraftToWire(draft);
    const { status, answer } = await inCallersNames(draftFields, () =>
      this.#http.exchange<ReceiptWire>('POST', '/api/v1/tasks', { body }),
    );
    return receiptFromWire(answer, status === 201);
  }

  /** In as many requests as their number and size need. */
  async submitMany(drafts: readonly TaskDraft[]): Promise<readonly SubmitOutcome[]> {
    const written = drafts.map(tryWrite);
    const outcomes: SubmitOutcome[] = [];
    for (const tasks of splitBatch(written)) {
      const answer = await this.#http.post<BatchAnswerWire>(
        '/api/v1/tasks/batch',
        `{"tasks":[${tasks.join(',')}]}`,
      );
      outcomes.push(...submitOutcomesFromWire(answer));
    }
    const answers = outcomes.values();
    return written.flatMap((one) => {
      if (one.kind === 'refused') return [one];
      const { value } = answers.next();
      return value === undefined ? [] : [asAlone(value)];
    });
  }

  async getTask(taskId: TaskId, options: { readonly history?: boolean } = {}): Promise<TaskView> {
    refuseUnknown({ history: 'history' }, options);
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

  async listTasks(filter: TaskSearch, page: ListRequest = {}): Promise<TaskPage> {
    const query = queryOf(taskSearchToWire(filter), writeRequest(listFields, page) as object);
    return taskPageFromWire(
      await inCallersNames(searchFields, () =>
        this.#http.get<TaskPageWire>('/api/v1/tasks', query),
      ),
    );
  }

  async cancelTask(taskId: TaskId): Promise<Cancellation> {
    const { answer } = await this.#http.exchange<CancellationWire>('DELETE', taskPath(taskId));
    return cancellationFromWire(answer);
  }

  async countTasks(filter: TaskFilter, request: TaskCountRequest = {}): Promise<TaskCount> {
    const query = queryOf(countTasksToWire(filter, request));
    return taskCountFromWire(
      await inCallersNames(countTasksFields, () =>
        this.#http.get<TaskCountWire>('/api/v1/tasks/count', query),
      ),
    );
  }

  async cancelTasks(filter: TaskFilter, request: BulkRequest = {}): Promise<CancelledTasks> {
    const body = cancelTasksToWire(filter, request);
    return cancelledFromWire(
      await inCallersNames(cancelTasksFields, () =>
        this.#http.post<CancelledWire>('/api/v1/tasks/cancel', body),
      ),
    );
  }

  async replayTasks(filter: TaskFilter, request: BulkReplay = {}): Promise<ReplayedDeadLetters> {
    const body = replayTasksToWire(filter, request);
    return replayedFromWire(
      await inCallersNames(replayTasksFields, () =>
        this.#http.post<ReplayedWire>('/api/v1/tasks/replay', body),
      ),
    );
  }

  async reprioritiseTasks(
    filter: TaskFilter,
    request: BulkReprioritise,
  ): Promise<ReprioritisedTasks> {
    const body = reprioritiseTasksToWire(filter, request);
    return reprioritisedFromWire(
      await inCallersNames(reprioritiseTasksFields, () =>
        this.#http.post<ReprioritisedWire>('/api/v1/tasks/reprioritise', body),
      ),
    );
  }

  async changeTask(taskId: TaskId, change: TaskChange): Promise<TaskView | Receipt> {
    const body = taskChangeToWire(change);
    const { answer } = await inCallersNames(taskChangeFields, () =>
      this.#http.exchange<TaskWire | ReceiptWire>('PATCH', taskPath(taskId), { body }),
    );
    return 'parameters' in answer ? taskFromWire(answer) : receiptFromWire(answer, false);
  }

  async replayTask(taskId: TaskId, request: ReplayRequest = {}): Promise<TaskView> {
    const body = replayToWire(request);
    return taskFromWire(
      await inCallersNames(replayFields, () =>
        this.#http.post<TaskWire>(`${taskPath(taskId)}/replay`, body),
      ),
    );
  }

  async listQueues(page: PageRequest = {}): Promise<Page<QueueView>> {
    return queuePageFromWire(
      await this.#http.get<QueuePageWire>('/api/v1/queues', pageQuery(page)),
    );
  }

  async getQueue(name: string): Promise<QueueView> {
    return queueFromWire(await this.#http.get<QueueWire>(queuePath(name)));
  }

  async putQueue(name: string, draft: QueueDraft): Promise<QueueView> {
    const body = queueDraftToWire(draft);
    return queueFromWire(
      await inCallersNames(queueFields, () => this.#http.put<QueueWire>(queuePath(name), body)),
    );
  }

  async changeQueue(name: string, change: QueueChange): Promise<QueueView> {
    const body = queueChangeToWire(change);
    const { answer } = await inCallersNames(queueFields, () =>
      this.#http.exchange<QueueWire>('PATCH', queuePath(name), { body }),
    );
    return queueFromWire(answer);
  }

  async pauseQueue(name: string, until?: Date): Promise<QueueView> {
    const body = { until: timestampFieldToWire(until) };
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

  async putLimit(name: string, limit: RateLimitDraft): Promise<LimitView> {
    const body = rateLimitDraftToWire(limit);
    return limitFromWire(
      await inCallersNames(rateFields, () => this.#http.put<LimitWire>(limitPath(name), body)),
    );
  }

  async deleteLimit(name: string): Promise<void> {
    await this.#http.exchange('DELETE', limitPath(name));
  }

  async getStatistics(): Promise<Statistics> {
    return statisticsFromWire(await this.#http.get<StatisticsWire>('/api/v1/queue/stats'));
  }

  async listDeadLetters(filter: DeadLetterFilter, page: ListRequest = {}): Promise<DeadLetterPage> {
    const query = queryOf(deadLetterFilterToWire(filter), writeRequest(listFields, page) as object);
    return deadLetterPageFromWire(
      await inCallersNames(deadLetterFilterFields, () =>
        this.#http.get<DeadLetterPageWire>('/api/v1/dlq', query),
      ),
    );
  }

  async replayDeadLetters(
    filter: DeadLetterFilter,
    request: DeadLetterReplay = {},
  ): Promise<ReplayedDeadLetters> {
    const body = replayDeadLettersToWire(filter, request);
    return replayedFromWire(
      await inCallersNames({ ...deadLetterFilterFields, ...deadLetterReplayFields }, () =>
        this.#http.post<ReplayedWire>('/api/v1/dlq/replay', body),
      ),
    );
  }

  async analyseDeadLetters(): Promise<readonly DeadLetterPattern[]> {
    return deadLetterAnalysisFromWire(
      await this.#http.get<DeadLetterAnalysisWire>('/api/v1/dlq/analysis'),
    );
  }
}

type Refused = Extract<SubmitOutcome, { kind: 'refused' }>;

/** Names are refused here, one draft by one; what is wrong with values the server says. */
function tryWrite(
  draft: TaskDraft,
): { readonly kind: 'written'; readonly wire: TaskDraftWire } | Refused {
  try {
    return { kind: 'written', wire: taskDraftToWire(draft) };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { kind: 'refused', ...refusalOf(error) };
  }
}

/** Without its place in a request, of which the caller knows nothing. */
function asAlone(outcome: SubmitOutcome): SubmitOutcome {
  if (outcome.kind === 'accepted') return outcome;
  return callersRefusal(draftFields, outcome, (path) => path.replace(/^\/tasks\/\d+/, ''));
}

/** The JSON of the drafts, in pieces that one request may carry. */
function* splitBatch(drafts: readonly ReturnType<typeof tryWrite>[]): Generator<string[]> {
  // Characters, not bytes: a quarter of the limit holds even when each takes four.
  const maxCharacters = bounds.requestBytes / 4;
  let piece: string[] = [];
  let characters = 0;
  for (const draft of drafts) {
    if (draft.kind === 'refused') continue;
    const task = JSON.stringify(draft.wire);
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

export function pageQuery(page: PageRequest): Record<string, string> {
  return queryOf(writeRequest(pageFields, page) as object);
}

export function queryOf(...parts: readonly object[]): Record<string, string> {
  const entries = parts.flatMap((part) => Object.entries(part));
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

const taskPath = (taskId: TaskId): string => `/api/v1/tasks/${checkId('/taskId', taskId)}`;
const queuePath = (name: string): string =>
  `/api/v1/queues/${encodeURIComponent(checkName('/name', name))}`;
const limitPath = (name: string): string =>
  `/api/v1/limits/${encodeURIComponent(checkName('/name', name))}`;
