import type { AuditFilter } from './audit-api.js';
import { listAuditQuerySchema } from './audit-schema.js';
import { auditFields, auditFilterFromWire, auditQueryToWire } from './audit-wire.js';
import type { TSchema } from 'typebox';
import { alertDraftSchema, alertSilenceSchema, listAlertsQuerySchema } from './alerts-schema.js';
import {
  alertDraftFields,
  alertDraftFromWire,
  alertDraftToWire,
  alertFilterFields,
  alertFilterToWire,
  alertSilenceFields,
  alertSilenceFromWire,
  alertSilenceToWire,
} from './alerts-wire.js';
import type { BulkReplay, BulkReprioritise, BulkRequest, TaskCountRequest } from './bulk-api.js';
import {
  cancelTasksSchema,
  countTasksQuerySchema,
  replayTasksSchema,
  reprioritiseTasksSchema,
} from './bulk-schema.js';
import {
  bulkFilterFromWire,
  bulkReplayFromWire,
  bulkReprioritiseFromWire,
  bulkRequestFromWire,
  cancelTasksFields,
  cancelTasksToWire,
  countRequestFromWire,
  countTasksFields,
  countTasksToWire,
  replayTasksFields,
  replayTasksToWire,
  reprioritiseTasksFields,
  reprioritiseTasksToWire,
} from './bulk-wire.js';
import { compileCheck, type Check } from './compile-check.js';
import type { DeadLetterFilter, DeadLetterReplay } from './dead-letters-api.js';
import {
  listDeadLettersQuerySchema,
  replayDeadLettersSchema,
  type ReplayDeadLettersWire,
} from './dead-letters-schema.js';
import {
  deadLetterFilterFields,
  deadLetterFilterFromWire,
  deadLetterFilterToWire,
  deadLetterReplayFields,
  deadLetterReplayFromWire,
  replayDeadLettersToWire,
} from './dead-letters-wire.js';
import { defined } from './defined.js';
import { callersErrors, timestampFieldToWire, writeRequest, type Fields } from './fields.js';
import { keyDraftSchema } from './keys-schema.js';
import { keyDraftFields, keyDraftFromWire, keyDraftToWire } from './keys-wire.js';
import type { PageRequest } from './page.js';
import { invalidRequest } from './problem-wire.js';
import type { QueueChange, QueueDraft } from './queues-api.js';
import {
  listQueuesQuerySchema,
  pauseSchema,
  queueChangeSchema,
  queueDraftSchema,
  rateLimitSchema,
  type QueueChangeWire,
  type QueueDraftWire,
} from './queues-schema.js';
import {
  queueChangeToWire,
  queueDraftFromWire,
  queueDraftToWire,
  queueFields,
  rateFields,
  rateLimitDraftToWire,
  rateLimitFromWire,
} from './queues-wire.js';
import { seriesQuerySchema } from './series-schema.js';
import { seriesFields, seriesRequestFromWire, seriesRequestToWire } from './series-wire.js';
import type { ListRequest, TaskFilter, TaskSearch } from './tasks-api.js';
import {
  listTasksQuerySchema,
  replaySchema,
  taskChangeSchema,
  type TaskSearchWire,
} from './tasks-schema.js';
import {
  includeFromWire,
  listFields,
  pageFields,
  replayFields,
  replayFromWire,
  replayToWire,
  searchFields,
  taskChangeFields,
  taskChangeFromWire,
  taskChangeToWire,
  taskFilterFromWire,
  taskSearchFromWire,
  taskSearchToWire,
} from './tasks-wire.js';
import { registrationSchema } from './workers-schema.js';
import { registrationFields, registrationFromWire, registrationToWire } from './workers-wire.js';

/**
 * Requests that TypeScript gives in-process, checked by the schemas of HTTP: written as the wire has them, checked,
 * and read again. They throw in the names of TypeScript.
 */
interface Request<Given, Wire, Read> {
  readonly fields: Fields;
  readonly schema: TSchema;
  readonly write: (given: Given) => Wire;
  readonly read: (wire: Wire) => Read;
}

/** Compiled when it is first used: who opens an embedded Sluice does not wait for all of them. */
function strictly<Given, Wire, Read>({
  fields,
  schema,
  write,
  read,
}: Request<Given, Wire, Read>): (given: Given) => Read {
  let check: Check | undefined;
  return (given) => {
    const wire = write(given);
    check ??= compileCheck(schema);
    const errors = check(wire);
    if (errors !== null) throw invalidRequest(callersErrors(fields, errors));
    return read(wire);
  };
}

interface ListWire {
  readonly limit?: number;
  readonly cursor?: string;
  readonly include?: string;
}

export const readTaskCount = strictly({
  fields: countTasksFields,
  schema: countTasksQuerySchema,
  write: ([filter, request]: readonly [TaskFilter, TaskCountRequest]) =>
    countTasksToWire(filter, request),
  read: (wire) => [taskFilterFromWire(wire), countRequestFromWire(wire)] as const,
});

export const readCancelTasks = strictly({
  fields: cancelTasksFields,
  schema: cancelTasksSchema,
  write: ([filter, request]: readonly [TaskFilter, BulkRequest]) =>
    cancelTasksToWire(filter, request),
  read: (wire) => [bulkFilterFromWire(wire), bulkRequestFromWire(wire)] as const,
});

export const readReplayTasks = strictly({
  fields: replayTasksFields,
  schema: replayTasksSchema,
  write: ([filter, request]: readonly [TaskFilter, BulkReplay]) =>
    replayTasksToWire(filter, request),
  read: (wire) => [bulkFilterFromWire(wire), bulkReplayFromWire(wire)] as const,
});

export const readReprioritiseTasks = strictly({
  fields: reprioritiseTasksFields,
  schema: reprioritiseTasksSchema,
  write: ([filter, request]: readonly [TaskFilter, BulkReprioritise]) =>
    reprioritiseTasksToWire(filter, request),
  read: (wire) => [bulkFilterFromWire(wire), bulkReprioritiseFromWire(wire)] as const,
});

/** Of lists: what a task must be is optional there. */
export const readTaskList = strictly({
  fields: { ...searchFields, ...listFields },
  schema: listTasksQuerySchema,
  write: ([filter, page]: readonly [TaskSearch, ListRequest]) => ({
    ...taskSearchToWire(filter),
    ...(writeRequest(listFields, page) as ListWire),
  }),
  read: (wire: TaskSearchWire & ListWire) => [taskSearchFromWire(wire), listOf(wire)] as const,
});

export const readTaskChange = strictly({
  fields: taskChangeFields,
  schema: taskChangeSchema,
  write: taskChangeToWire,
  read: taskChangeFromWire,
});

export const readReplay = strictly({
  fields: replayFields,
  schema: replaySchema,
  write: replayToWire,
  read: replayFromWire,
});

/** Pages of everything that has no filter are asked for in the same way. */
export const readPage = strictly({
  fields: pageFields,
  schema: listQueuesQuerySchema,
  write: (page: PageRequest) => writeRequest(pageFields, page) as PageRequest,
  read: (page) => page,
});

export const readQueueDraft = strictly<QueueDraft, QueueDraftWire, QueueDraft>({
  fields: queueFields,
  schema: queueDraftSchema,
  write: queueDraftToWire,
  read: queueDraftFromWire,
});

export const readQueueChange = strictly<QueueChange, QueueChangeWire, QueueChange>({
  fields: queueFields,
  schema: queueChangeSchema,
  write: queueChangeToWire,
  read: queueDraftFromWire,
});

export const readPause = strictly({
  fields: {},
  schema: pauseSchema,
  write: (until: Date | undefined) => defined({ until: timestampFieldToWire(until) }),
  read: ({ until }) => (until === undefined ? undefined : new Date(until as string)),
});

export const readSeriesRequest = strictly({
  fields: seriesFields,
  schema: seriesQuerySchema,
  write: seriesRequestToWire,
  read: seriesRequestFromWire,
});

export const readRateLimit = strictly({
  fields: rateFields,
  schema: rateLimitSchema,
  write: rateLimitDraftToWire,
  read: rateLimitFromWire,
});

export const readDeadLetterList = strictly({
  fields: { ...deadLetterFilterFields, ...listFields },
  schema: listDeadLettersQuerySchema,
  write: ([filter, page]: readonly [DeadLetterFilter, ListRequest]) => ({
    ...deadLetterFilterToWire(filter),
    ...(writeRequest(listFields, page) as ListWire),
  }),
  read: (wire) => [deadLetterFilterFromWire(wire), listOf(wire)] as const,
});

export const readDeadLetterReplay = strictly({
  fields: { ...deadLetterFilterFields, ...deadLetterReplayFields },
  schema: replayDeadLettersSchema,
  write: ([filter, request]: readonly [DeadLetterFilter, DeadLetterReplay]) =>
    replayDeadLettersToWire(filter, request),
  read: (wire: ReplayDeadLettersWire) =>
    [deadLetterFilterFromWire(wire), deadLetterReplayFromWire(wire)] as const,
});

export const readAuditList = strictly({
  fields: auditFields,
  schema: listAuditQuerySchema,
  write: ([filter, page]: readonly [AuditFilter, PageRequest]) => auditQueryToWire(filter, page),
  read: (wire) =>
    [auditFilterFromWire(wire), defined({ limit: wire.limit, cursor: wire.cursor })] as const,
});

export const readKeyDraft = strictly({
  fields: keyDraftFields,
  schema: keyDraftSchema,
  write: keyDraftToWire,
  read: keyDraftFromWire,
});

export const readAlertFilter = strictly({
  fields: alertFilterFields,
  schema: listAlertsQuerySchema,
  write: alertFilterToWire,
  read: (filter) => filter,
});

export const readAlertDraft = strictly({
  fields: alertDraftFields,
  schema: alertDraftSchema,
  write: alertDraftToWire,
  read: alertDraftFromWire,
});

export const readAlertSilence = strictly({
  fields: alertSilenceFields,
  schema: alertSilenceSchema,
  write: alertSilenceToWire,
  read: alertSilenceFromWire,
});

export const readRegistration = strictly({
  fields: registrationFields,
  schema: registrationSchema,
  write: registrationToWire,
  read: registrationFromWire,
});

function listOf({ limit, cursor, include }: ListWire): ListRequest {
  return defined({ limit, cursor, include: includeFromWire(include) });
}
