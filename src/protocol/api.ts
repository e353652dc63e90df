import type { AlertApi } from './alerts-api.js';
import type { AuditApi } from './audit-api.js';
import type { BulkApi } from './bulk-api.js';
import type { DeadLetterApi } from './dead-letters-api.js';
import type { ForecastApi } from './forecast-api.js';
import type { KeyApi } from './keys-api.js';
import type { PushbackApi } from './pushbacks-api.js';
import type { QueueApi } from './queues-api.js';
import type { Scaling } from './scaling-api.js';
import type { Series, SeriesRequest } from './series-api.js';
import type { Attention, Statistics } from './statistics-api.js';
import type { TaskTypeApi } from './task-types-api.js';
import type { TaskApi } from './tasks-api.js';
import type { FleetApi, WorkerApi } from './workers-api.js';

/** What programs ask for that submit, read and steer tasks and queues: all of it is in `sluice/client`. */
export interface ClientApi extends TaskApi, BulkApi, QueueApi, DeadLetterApi {
  getStatistics(): Promise<Statistics>;
}

/** What people and programs ask for that operate Sluice. */
export interface OperatorApi
  extends TaskTypeApi, FleetApi, KeyApi, AlertApi, AuditApi, ForecastApi, PushbackApi {
  getSeries(request?: SeriesRequest): Promise<Series>;
  /** Which queues and workers a person should look at. */
  getAttention(): Promise<Attention>;
  getScaling(): Promise<Scaling>;
}

/**
 * What can be asked of Sluice, in-process (the engine) or remotely (HTTP). Both refuse with a
 * `SluiceError` of the same code, so nothing above needs to know which one it talks to.
 */
export interface SluiceApi extends ClientApi, OperatorApi, WorkerApi {}

/** Somebody that a program acts for, as the program says. */
export interface Person {
  readonly name: string;
  /** From where the person came; null: not known. Over HTTP the server writes down where the program is. */
  readonly address?: string | null;
}

/** What a program holds: it may act for people. */
export interface ProgramsApi extends SluiceApi {
  /** The same API. What is changed through it is in the audit with the name of the person. */
  onBehalfOf(person: Person): SluiceApi;
}
