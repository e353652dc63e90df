import type { TSchema } from 'typebox';
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
import type { ListRequest } from './tasks-api.js';
import {
  listTasksQuerySchema,
  replaySchema,
  taskChangeSchema,
  taskFilterSchema,
  type TaskFilterWire,
} from './tasks-schema.js';
import {
  filterFields,
  includeFromWire,
  listFields,
  pageFields,
  replayFields,
  replayFromWire,
  replayToWire,
  taskChangeFields,
  taskChangeFromWire,
  taskChangeToWire,
  taskFilterFromWire,
  taskFilterToWire,
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

export const readTaskFilter = strictly({
  fields: filterFields,
  schema: taskFilterSchema,
  write: taskFilterToWire,
  read: taskFilterFromWire,
});

/** Of lists: what a task must be is optional there. */
export const readTaskList = strictly({
  fields: { ...filterFields, ...listFields },
  schema: listTasksQuerySchema,
  write: ([filter, page]: readonly [Parameters<typeof taskFilterToWire>[0], ListRequest]) => ({
    ...taskFilterToWire(filter),
    ...(writeRequest(listFields, page) as ListWire),
  }),
  read: (wire: TaskFilterWire & ListWire) => [taskFilterFromWire(wire), listOf(wire)] as const,
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

export const readKeyDraft = strictly({
  fields: keyDraftFields,
  schema: keyDraftSchema,
  write: keyDraftToWire,
  read: keyDraftFromWire,
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
