import type { TaskId, WorkerId } from '../domain/ids.js';
import type { SluiceApi } from '../protocol/api.js';
import { bounds } from '../protocol/bounds.js';
import { taskIdFromWire } from '../protocol/common-wire.js';
import { inCallersNames } from '../protocol/fields.js';
import { reportAnswerFromWire, reportToWire } from '../protocol/reports-wire.js';
import {
  areReportAnswers,
  isAcknowledged,
  isHeartbeatAnswer,
  isPollAnswer,
  isRegistered,
  isReleased,
} from '../protocol/worker-answers.js';
import type {
  Heartbeat,
  HeartbeatAnswer,
  Held,
  PollAnswer,
  PollRequest,
  Registered,
  Registration,
  Report,
  ReportAnswer,
} from '../protocol/workers-api.js';
import type {
  HeartbeatAnswerWire,
  PollAnswerWire,
  RegisteredWire,
  ReportAnswersWire,
} from '../protocol/workers-schema.js';
import {
  heartbeatAnswerFromWire,
  heartbeatToWire,
  heldToWire,
  pollAnswerFromWire,
  pollToWire,
  registeredFromWire,
  registrationFields,
  registrationToWire,
} from '../protocol/workers-wire.js';
import { HttpOperatorApi } from './http-operator-api.js';

/** Everything over HTTP: also what only workers ask for. */
export class HttpWorkerApi extends HttpOperatorApi implements SluiceApi {
  async register(registration: Registration): Promise<Registered> {
    const body = registrationToWire(registration);
    return registeredFromWire(
      await inCallersNames(registrationFields, () =>
        this.http.post<RegisteredWire>('/internal/workers/register', body, { fits: isRegistered }),
      ),
    );
  }

  async poll(workerId: WorkerId, request: PollRequest, signal?: AbortSignal): Promise<PollAnswer> {
    const waitMs = Math.min(request.waitMs ?? 0, bounds.waitSeconds * 1000);
    return pollAnswerFromWire(
      await this.http.post<PollAnswerWire>(
        `${workerPath(workerId)}/poll`,
        pollToWire({ ...request, waitMs }),
        { waitMs, signal, fits: isPollAnswer },
      ),
    );
  }

  async start(workerId: WorkerId, held: Held): Promise<void> {
    await this.http.post(`${workerPath(workerId)}/start`, heldToWire(held), acknowledged);
  }

  async progress(
    workerId: WorkerId,
    held: Held,
    progress: { readonly percent: number; readonly message?: string },
  ): Promise<void> {
    const body = {
      ...heldToWire(held),
      progress_percent: progress.percent,
      status_message: progress.message,
    };
    await this.http.post(`${workerPath(workerId)}/progress`, body, acknowledged);
  }

  async report(workerId: WorkerId, reports: readonly Report[]): Promise<readonly ReportAnswer[]> {
    if (reports.length === 0) return [];
    const { results } = await this.http.post<ReportAnswersWire>(
      `${workerPath(workerId)}/result`,
      { results: reports.map(reportToWire) },
      { fits: areReportAnswers(reports) },
    );
    return results.map(reportAnswerFromWire);
  }

  async release(
    workerId: WorkerId,
    held: readonly Held[],
  ): Promise<{ readonly released: readonly TaskId[]; readonly lost: readonly TaskId[] }> {
    if (held.length === 0) return { released: [], lost: [] };
    const { released, lost } = await this.http.post<{ released: string[]; lost: string[] }>(
      `${workerPath(workerId)}/release`,
      { tasks: held.map(heldToWire) },
      { fits: isReleased },
    );
    return { released: released.map(taskIdFromWire), lost: lost.map(taskIdFromWire) };
  }

  async heartbeat(workerId: WorkerId, beat: Heartbeat): Promise<HeartbeatAnswer> {
    return heartbeatAnswerFromWire(
      await this.http.post<HeartbeatAnswerWire>(
        `${workerPath(workerId)}/heartbeat`,
        heartbeatToWire(beat),
        { fits: isHeartbeatAnswer },
      ),
    );
  }

  async deregister(workerId: WorkerId): Promise<void> {
    await this.http.post(`${workerPath(workerId)}/deregister`, {}, acknowledged);
  }
}

const acknowledged = { fits: isAcknowledged };

const workerPath = (workerId: WorkerId): string =>
  `/internal/workers/${encodeURIComponent(workerId)}`;
