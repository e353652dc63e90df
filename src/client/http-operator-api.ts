import type { WorkerId } from '../domain/ids.js';
import type {
  AlertDraft,
  AlertFilter,
  AlertList,
  AlertSilence,
  AlertView,
} from '../protocol/alerts-api.js';
import type { AlertListWire, AlertWire } from '../protocol/alerts-schema.js';
import {
  alertDraftFields,
  alertDraftToWire,
  alertFilterFields,
  alertFilterToWire,
  alertFromWire,
  alertListFromWire,
  alertSilenceFields,
  alertSilenceToWire,
} from '../protocol/alerts-wire.js';
import type { OperatorApi } from '../protocol/api.js';
import type { AuditEntry, AuditFilter } from '../protocol/audit-api.js';
import type { AuditPageWire } from '../protocol/audit-schema.js';
import { auditFields, auditPageFromWire, auditQueryToWire } from '../protocol/audit-wire.js';
import { inCallersNames } from '../protocol/fields.js';
import type { QueueForecast } from '../protocol/forecast-api.js';
import type { ForecastWire } from '../protocol/forecast-schema.js';
import { forecastFromWire } from '../protocol/forecast-wire.js';
import type { CreatedKey, KeyDraft, KeyView, SessionView } from '../protocol/keys-api.js';
import type {
  CreatedKeyWire,
  KeyPageWire,
  KeyWire,
  SessionListWire,
  SessionWire,
} from '../protocol/keys-schema.js';
import {
  createdKeyFromWire,
  keyDraftFields,
  keyDraftToWire,
  keyFromWire,
  keyPageFromWire,
  sessionFromWire,
} from '../protocol/keys-wire.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type { Pushback } from '../protocol/pushbacks-api.js';
import type { PushbackPageWire } from '../protocol/pushbacks-schema.js';
import { pushbackPageFromWire } from '../protocol/pushbacks-wire.js';
import type { Scaling } from '../protocol/scaling-api.js';
import type { ScalingWire } from '../protocol/scaling-schema.js';
import { scalingFromWire } from '../protocol/scaling-wire.js';
import type { Series, SeriesRequest } from '../protocol/series-api.js';
import type { SeriesWire } from '../protocol/series-schema.js';
import { seriesFields, seriesFromWire, seriesRequestToWire } from '../protocol/series-wire.js';
import type { ListedTaskType, TaskTypeView } from '../protocol/task-types-api.js';
import type { Attention } from '../protocol/statistics-api.js';
import type { AttentionWire } from '../protocol/statistics-schema.js';
import { attentionFromWire } from '../protocol/statistics-wire.js';
import type { TaskTypePageWire, TaskTypeWire } from '../protocol/task-types-schema.js';
import { taskTypeFromWire, taskTypePageFromWire } from '../protocol/task-types-wire.js';
import { checkId, checkName, checkText } from '../protocol/values.js';
import type { WorkerDetail, WorkerView } from '../protocol/workers-api.js';
import type { WorkerDetailWire, WorkerPageWire, WorkerWire } from '../protocol/workers-schema.js';
import {
  workerDetailFromWire,
  workerFromWire,
  workerPageFromWire,
} from '../protocol/workers-wire.js';
import { HttpApi, pageQuery, queryOf } from './http-api.js';

/** Over HTTP, also what operators ask for. Bundles for browsers leave it out. */
export class HttpOperatorApi extends HttpApi implements OperatorApi {
  async listAlerts(filter: AlertFilter = {}): Promise<AlertList> {
    const query = { ...alertFilterToWire(filter) };
    return alertListFromWire(
      await inCallersNames(alertFilterFields, () =>
        this.http.get<AlertListWire>('/api/v1/alerts', query),
      ),
    );
  }

  async putAlert(name: string, draft: AlertDraft): Promise<AlertView> {
    const body = alertDraftToWire(draft);
    return alertFromWire(
      await inCallersNames(alertDraftFields, () => this.http.put<AlertWire>(alertPath(name), body)),
    );
  }

  async silenceAlert(name: string, silence: AlertSilence): Promise<AlertView> {
    const body = alertSilenceToWire(silence);
    return alertFromWire(
      await inCallersNames(alertSilenceFields, () =>
        this.http.post<AlertWire>(`${alertPath(name)}/silence`, body),
      ),
    );
  }

  async listAudit(filter: AuditFilter = {}, page: PageRequest = {}): Promise<Page<AuditEntry>> {
    const query = queryOf(auditQueryToWire(filter, page));
    return auditPageFromWire(
      await inCallersNames(auditFields, () => this.http.get<AuditPageWire>('/api/v1/audit', query)),
    );
  }

  async listTaskTypes(page: PageRequest = {}): Promise<Page<ListedTaskType>> {
    return taskTypePageFromWire(
      await this.http.get<TaskTypePageWire>('/api/v1/task-types', pageQuery(page)),
    );
  }

  async getTaskType(taskType: string): Promise<TaskTypeView> {
    const path = `/api/v1/task-types/${encodeURIComponent(checkName('/taskType', taskType))}`;
    return taskTypeFromWire(await this.http.get<TaskTypeWire>(path));
  }

  async getSeries(request: SeriesRequest = {}): Promise<Series> {
    const query = queryOf(seriesRequestToWire(request));
    return seriesFromWire(
      await inCallersNames(seriesFields, () => this.http.get<SeriesWire>('/api/v1/series', query)),
    );
  }

  async getForecast(queue: string): Promise<QueueForecast> {
    return forecastFromWire(await this.http.get<ForecastWire>(`${queuePath(queue)}/forecast`));
  }

  async listPushbacks(queue: string, page: PageRequest = {}): Promise<Page<Pushback>> {
    const path = `${queuePath(queue)}/pushbacks`;
    return pushbackPageFromWire(await this.http.get<PushbackPageWire>(path, pageQuery(page)));
  }

  async getAttention(): Promise<Attention> {
    return attentionFromWire(await this.http.get<AttentionWire>('/api/v1/attention'));
  }

  async getScaling(): Promise<Scaling> {
    return scalingFromWire(await this.http.get<ScalingWire>('/api/v1/scaling'));
  }

  async listWorkers(page: PageRequest = {}): Promise<Page<WorkerView>> {
    return workerPageFromWire(
      await this.http.get<WorkerPageWire>('/api/v1/workers', pageQuery(page)),
    );
  }

  async getWorker(workerId: WorkerId): Promise<WorkerDetail> {
    return workerDetailFromWire(await this.http.get<WorkerDetailWire>(fleetPath(workerId)));
  }

  async drainWorker(workerId: WorkerId): Promise<WorkerView> {
    return workerFromWire(await this.http.post<WorkerWire>(`${fleetPath(workerId)}/drain`, {}));
  }

  async createKey(draft: KeyDraft): Promise<CreatedKey> {
    const body = keyDraftToWire(draft);
    return createdKeyFromWire(
      await inCallersNames(keyDraftFields, () =>
        this.http.post<CreatedKeyWire>('/api/v1/keys', body),
      ),
    );
  }

  async listKeys(page: PageRequest = {}): Promise<Page<KeyView>> {
    return keyPageFromWire(await this.http.get<KeyPageWire>('/api/v1/keys', pageQuery(page)));
  }

  async revokeKey(id: string): Promise<KeyView> {
    const path = `/api/v1/keys/${encodeURIComponent(checkText('/id', id))}`;
    return keyFromWire((await this.http.exchange<KeyWire>('DELETE', path)).answer);
  }

  async listSessions(keyId: string): Promise<readonly SessionView[]> {
    const path = `/api/v1/keys/${encodeURIComponent(checkText('/keyId', keyId))}/sessions`;
    return (await this.http.get<SessionListWire>(path)).items.map(sessionFromWire);
  }

  async endSession(keyId: string, sessionId: string): Promise<SessionView> {
    const key = encodeURIComponent(checkText('/keyId', keyId));
    const session = encodeURIComponent(checkText('/sessionId', sessionId));
    const path = `/api/v1/keys/${key}/sessions/${session}`;
    return sessionFromWire((await this.http.exchange<SessionWire>('DELETE', path)).answer);
  }
}

const fleetPath = (workerId: WorkerId): string =>
  `/api/v1/workers/${checkId('/workerId', workerId)}`;

const queuePath = (queue: string): string =>
  `/api/v1/queues/${encodeURIComponent(checkName('/queue', queue))}`;

const alertPath = (name: string): string =>
  `/api/v1/alerts/${encodeURIComponent(checkName('/name', name))}`;
