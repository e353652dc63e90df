import type { DeadLetterApi } from './dead-letters-api.js';
import type { KeyApi } from './keys-api.js';
import type { QueueApi } from './queues-api.js';
import type { Scaling } from './scaling-api.js';
import type { Series, SeriesRequest } from './series-api.js';
import type { Statistics } from './statistics-api.js';
import type { TaskTypeApi } from './task-types-api.js';
import type { TaskApi } from './tasks-api.js';
import type { FleetApi, WorkerApi } from './workers-api.js';

/** What clients ask for: everything but the calls that only workers make. */
export interface ClientApi extends TaskApi, TaskTypeApi, QueueApi, DeadLetterApi, FleetApi, KeyApi {
  getStatistics(): Promise<Statistics>;
  getSeries(request?: SeriesRequest): Promise<Series>;
  getScaling(): Promise<Scaling>;
}

/**
 * What can be asked of Sluice, in-process (the engine) or remotely (HTTP). Both refuse with a
 * `SluiceError` of the same code, so nothing above needs to know which one it talks to.
 */
export interface SluiceApi extends ClientApi, WorkerApi {}
