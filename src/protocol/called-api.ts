import type { TaskId, WorkerId } from '../domain/ids.js';
import type { AlertDraft, AlertSilence } from './alerts-api.js';
import type { SluiceApi } from './api.js';
import type { BulkReplay, BulkReprioritise, BulkRequest } from './bulk-api.js';
import type { Caller } from './caller.js';
import type { DeadLetterFilter, DeadLetterReplay } from './dead-letters-api.js';
import type { KeyDraft } from './keys-api.js';
import type { QueueChange, QueueDraft, RateLimitDraft } from './queues-api.js';
import type { ReplayRequest, TaskChange, TaskFilter } from './tasks-api.js';

/** Everything that can be asked, with a caller where the audit writes down who called. */
export interface CalledApi extends SluiceApi {
  cancelTask(taskId: TaskId, caller?: Caller): ReturnType<SluiceApi['cancelTask']>;
  cancelTasks(
    filter: TaskFilter,
    request?: BulkRequest,
    caller?: Caller,
  ): ReturnType<SluiceApi['cancelTasks']>;
  replayTasks(
    filter: TaskFilter,
    request?: BulkReplay,
    caller?: Caller,
  ): ReturnType<SluiceApi['replayTasks']>;
  reprioritiseTasks(
    filter: TaskFilter,
    request: BulkReprioritise,
    caller?: Caller,
  ): ReturnType<SluiceApi['reprioritiseTasks']>;
  changeTask(
    taskId: TaskId,
    change: TaskChange,
    caller?: Caller,
  ): ReturnType<SluiceApi['changeTask']>;
  replayTask(
    taskId: TaskId,
    request?: ReplayRequest,
    caller?: Caller,
  ): ReturnType<SluiceApi['replayTask']>;
  replayDeadLetters(
    filter: DeadLetterFilter,
    request?: DeadLetterReplay,
    caller?: Caller,
  ): ReturnType<SluiceApi['replayDeadLetters']>;
  putQueue(name: string, draft: QueueDraft, caller?: Caller): ReturnType<SluiceApi['putQueue']>;
  changeQueue(
    name: string,
    change: QueueChange,
    caller?: Caller,
  ): ReturnType<SluiceApi['changeQueue']>;
  pauseQueue(name: string, until?: Date, caller?: Caller): ReturnType<SluiceApi['pauseQueue']>;
  resumeQueue(name: string, caller?: Caller): ReturnType<SluiceApi['resumeQueue']>;
  putLimit(name: string, limit: RateLimitDraft, caller?: Caller): ReturnType<SluiceApi['putLimit']>;
  deleteLimit(name: string, caller?: Caller): ReturnType<SluiceApi['deleteLimit']>;
  putAlert(name: string, draft: AlertDraft, caller?: Caller): ReturnType<SluiceApi['putAlert']>;
  silenceAlert(
    name: string,
    silence: AlertSilence,
    caller?: Caller,
  ): ReturnType<SluiceApi['silenceAlert']>;
  drainWorker(workerId: WorkerId, caller?: Caller): ReturnType<SluiceApi['drainWorker']>;
  createKey(draft: KeyDraft, caller?: Caller): ReturnType<SluiceApi['createKey']>;
  revokeKey(id: string, caller?: Caller): ReturnType<SluiceApi['revokeKey']>;
  endSession(
    keyId: string,
    sessionId: string,
    caller?: Caller,
  ): ReturnType<SluiceApi['endSession']>;
}
