import { Type, type Static } from 'typebox';
import { bounds } from './bounds.js';
import {
  costSchema,
  exampleTaskId,
  jsonObjectSchema,
  jsonValueSchema,
  labelSchema,
  nameOrAnySchema,
  nameSchema,
  nextCursorSchema,
  nullable,
  pageProperties,
  prioritySchema,
  request,
  taskStateSchema,
  textSchema,
  timestampSchema,
  uuidSchema,
} from './common-schema.js';
import { taskTypeDefinitionSchema } from './task-types-schema.js';

export const workerParamsSchema = Type.Object({ worker_id: uuidSchema('The worker') });

const capacitySchema = (description: string) =>
  Type.Integer({ minimum: 0, maximum: bounds.capacity, description });

const offerProperties = {
  capabilities: Type.Optional(
    Type.Array(labelSchema('A capability'), { maxItems: 100, description: 'What it has' }),
  ),
  task_types: Type.Optional(
    Type.Array(nameOrAnySchema('A task type'), {
      maxItems: 1_000,
      description: 'What it handles; absent or ["*"]: every type',
    }),
  ),
  queues: Type.Optional(
    Type.Array(nameSchema('A queue'), {
      maxItems: 1_000,
      description: 'Where it takes from; absent: every queue',
    }),
  ),
};

export const registrationSchema = request(
  'Registration',
  {
    ...offerProperties,
    task_types: Type.Optional(
      Type.Array(nameOrAnySchema('A task type'), {
        maxItems: 1_000,
        description:
          'What it handles; absent or ["*"]: every type. With its queues and capabilities ' +
          `${String(bounds.workerNamesBytes / 1024)} KiB of names at most`,
      }),
    ),
    capacity: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: bounds.capacity,
        description: 'Tasks it can run at once',
      }),
    ),
    name: Type.Optional(textSchema('For people')),
    host: Type.Optional(textSchema('Where it runs')),
    version: Type.Optional(
      textSchema(
        'Which release of its code it runs: of two, the definitions of the newer one count',
      ),
    ),
    definitions: Type.Optional(
      Type.Array(taskTypeDefinitionSchema, {
        maxItems: 1_000,
        description: 'Of the task types it handles: what submits get that leave it out',
      }),
    ),
  },
  {
    examples: [
      { capabilities: ['gpu'], task_types: ['chat'], capacity: 5, name: 'worker-1' },
      { task_types: ['chat'], definitions: [{ task_type: 'chat', queue: 'gpt-4o' }] },
    ],
  },
);
export type RegistrationWire = Static<typeof registrationSchema>;

export const registeredSchema = Type.Object(
  {
    worker_id: uuidSchema('Names the worker in all its later calls'),
    heartbeat_interval_ms: Type.Integer(),
    lease_ms: Type.Integer({ description: 'Silent for longer, and its tasks go to others' }),
    poll_wait_seconds: Type.Number({ description: 'How long a poll should wait' }),
    notes: Type.Optional(
      Type.Array(Type.String(), {
        description: 'What of its definitions does not count, and why; absent: all of it counts',
      }),
    ),
  },
  { title: 'Registered' },
);
export type RegisteredWire = Static<typeof registeredSchema>;

export const pollSchema = request(
  'Poll',
  {
    available_capacity: capacitySchema('Tasks it takes at most; 0 asks only for news'),
    wait_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: bounds.waitSeconds,
        description: 'How long to wait for work; 0 when absent',
      }),
    ),
    prefetch: Type.Optional(
      Type.Boolean({ description: 'Claims into assigned; it will say start for each' }),
    ),
    ...offerProperties,
  },
  { examples: [{ available_capacity: 3, wait_seconds: 20 }] },
);
export type PollWire = Static<typeof pollSchema>;

const claimedTaskSchema = Type.Object(
  {
    task_id: uuidSchema('The task'),
    task_type: Type.String(),
    queue: Type.String(),
    parameters: jsonObjectSchema('As submitted'),
    timeout_seconds: Type.Integer(),
    attempt: Type.Integer(),
    lease: Type.String({ description: 'The right to this attempt: every later call carries it' }),
    priority: prioritySchema,
    effective_priority: prioritySchema,
    retry_count: Type.Integer(),
    workflow_id: nullable(Type.String()),
    trace_id: Type.String({ description: 'As submitted; else that of traceparent, or its own id' }),
    traceparent: Type.Optional(
      Type.String({ description: 'W3C trace context of its submit; absent when it named none' }),
    ),
    deadline: timestampSchema('When the attempt times out'),
    waited_seconds: Type.Number({
      description: 'Since it could be taken; at a later attempt since it came back to its queue',
    }),
  },
  { title: 'ClaimedTask' },
);
export type ClaimedTaskWire = Static<typeof claimedTaskSchema>;

export const pollAnswerSchema = Type.Object(
  {
    tasks: Type.Array(claimedTaskSchema),
    cancelled: Type.Array(Type.String(), { description: 'Tasks it holds that were cancelled' }),
    drain: Type.Boolean({ description: 'Whether it should finish what it has and leave' }),
  },
  { title: 'PollAnswer' },
);
export type PollAnswerWire = Static<typeof pollAnswerSchema>;

const exampleLease = '3f1d7a52-0c8e-4b6f-9a41-5d2e8c7b6a90';

const heldProperties = {
  task_id: uuidSchema('The task'),
  lease: uuidSchema('The right to the attempt, from the poll'),
};

export const heldSchema = request('Held', heldProperties, {
  examples: [{ task_id: exampleTaskId, lease: exampleLease }],
});
export type HeldWire = Static<typeof heldSchema>;

export const progressSchema = request(
  'Progress',
  {
    ...heldProperties,
    progress_percent: Type.Number({ minimum: 0, maximum: 100 }),
    status_message: Type.Optional(textSchema('For people', 1_000)),
  },
  { examples: [{ task_id: exampleTaskId, lease: exampleLease, progress_percent: 40 }] },
);

const reportErrorSchema = request('ReportError', {
  code: textSchema(
    'RATE_LIMITED, UNAVAILABLE, QUOTA_EXHAUSTED, UNAUTHORIZED, FORBIDDEN, TIMEOUT, OUT_OF_MEMORY and INVALID_INPUT are treated specially',
    bounds.nameLength,
  ),
  message: Type.String({
    description: `Whatever went wrong; the first ${bounds.messageLength} characters are kept`,
  }),
  retriable: Type.Optional(Type.Boolean({ description: 'True when absent' })),
  retry_after_seconds: Type.Optional(Type.Number({ minimum: 0, maximum: 31_536_000 })),
  details: Type.Optional(jsonValueSchema('Whatever helps')),
});
export type ReportErrorWire = Static<typeof reportErrorSchema>;

const reportExamples = [
  {
    task_id: exampleTaskId,
    lease: exampleLease,
    status: 'completed',
    result: { text: 'Hello' },
    usage: { tokens: 1834 },
  },
  {
    task_id: exampleTaskId,
    lease: exampleLease,
    status: 'failed',
    error: { code: 'RATE_LIMITED', message: 'slow down', retry_after_seconds: 20 },
  },
];

export const reportSchema = request(
  'Report',
  {
    ...heldProperties,
    status: Type.Enum(['completed', 'failed']),
    result: Type.Optional(
      jsonValueSchema('With "completed": at most 1 MiB, else the attempt fails: RESULT_TOO_LARGE'),
    ),
    error: Type.Optional(reportErrorSchema),
    usage: Type.Optional(costSchema('Units that it really cost')),
    execution_duration_seconds: Type.Optional(Type.Number({ minimum: 0, maximum: 1e9 })),
  },
  { examples: reportExamples },
);
export type ReportWire = Static<typeof reportSchema>;

const reportsSchema = request('Reports', {
  results: Type.Array(reportSchema, { minItems: 1, maxItems: bounds.batchSize }),
});

export const oneOrManyReportsSchema = Type.Union([reportSchema, reportsSchema], {
  examples: reportExamples,
});

const afterFailureSchema = Type.Object(
  {
    kind: Type.Enum(['retry', 'deferral', 'dead_letter'], {
      description: 'A deferral comes back like a retry, and does not count as one',
    }),
    in_seconds: Type.Optional(Type.Number({ description: 'Of a retry and a deferral' })),
    reason: Type.Optional(Type.String({ description: 'Of a dead letter' })),
  },
  {
    title: 'AfterFailure',
    description: 'What becomes of a task whose attempt failed; absent when it was reported before.',
  },
);
export type AfterFailureWire = Static<typeof afterFailureSchema>;

const reportAnswerSchema = Type.Union(
  [
    Type.Object({
      task_id: Type.String(),
      accepted: Type.Literal(true),
      status: taskStateSchema,
      next: Type.Optional(afterFailureSchema),
    }),
    Type.Object({
      task_id: Type.String(),
      accepted: Type.Literal(false),
      reason: Type.Literal('lease_lost'),
    }),
  ],
  { title: 'ReportAnswer' },
);
export type ReportAnswerWire = Static<typeof reportAnswerSchema>;

const reportAnswersSchema = Type.Object(
  { results: Type.Array(reportAnswerSchema, { description: 'One for each report, in order' }) },
  { title: 'ReportAnswers' },
);
export type ReportAnswersWire = Static<typeof reportAnswersSchema>;

export const oneOrManyReportAnswersSchema = Type.Union([reportAnswerSchema, reportAnswersSchema]);

export const releaseSchema = request(
  'Release',
  {
    tasks: Type.Array(heldSchema, { minItems: 1, maxItems: bounds.batchSize }),
  },
  { examples: [{ tasks: [{ task_id: exampleTaskId, lease: exampleLease }] }] },
);

export const releasedSchema = Type.Object(
  {
    released: Type.Array(Type.String(), { description: 'Back in their queues, at no cost' }),
    lost: Type.Array(Type.String(), { description: 'Whose lease was no longer good' }),
  },
  { title: 'Released' },
);

export const heartbeatSchema = request(
  'Heartbeat',
  {
    current_load: capacitySchema('Tasks that it runs'),
    status: Type.Enum(['active', 'draining']),
    current_tasks: Type.Optional(
      Type.Array(uuidSchema('A task it holds'), {
        // As many as may run, and as many results that are not acknowledged.
        maxItems: 200_000,
        description: 'What it holds: what is missing twice goes back. Absent: nothing is compared',
      }),
    ),
    leases: Type.Optional(
      Type.Array(uuidSchema('The lease of the task at the same place of current_tasks'), {
        maxItems: 200_000,
        description:
          'As many as current_tasks. Needed after it registered again: what its former id held is ' +
          'its own only with the lease',
      }),
    ),
    undelivered: Type.Optional(
      Type.Array(uuidSchema('One of current_tasks'), {
        maxItems: bounds.undeliveredTasks,
        description:
          'Tasks that have ended here and whose results did not arrive. While it names them they do not time ' +
          'out, for an hour at most',
      }),
    ),
    available_capacity: Type.Optional(capacitySchema('Tasks that it could take now')),
    max_capacity: Type.Optional(capacitySchema('Tasks that it can run at once')),
    memory_usage: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1e15, description: 'In use, as a share of its limit' }),
    ),
    event_loop_delay_ms: Type.Optional(Type.Number({ minimum: 0, maximum: 1e9 })),
    cpu_usage: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1e6, description: 'Cores that it uses: 1 is one core' }),
    ),
    consecutive_failures: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000_000,
        description: 'Attempts that failed in a row, up to the last one; absent: none',
      }),
    ),
    health: Type.Optional(jsonObjectSchema('Whatever else it wants to show')),
  },
  { examples: [{ current_load: 1, status: 'active', current_tasks: [exampleTaskId] }] },
);
export type HeartbeatWire = Static<typeof heartbeatSchema>;

export const heartbeatAnswerSchema = Type.Object(
  {
    acknowledged: Type.Literal(true),
    should_drain: Type.Boolean(),
    cancelled: Type.Array(Type.String(), { description: 'Tasks it holds that were cancelled' }),
    lost: Type.Array(Type.String(), { description: 'Tasks it named but no longer holds' }),
  },
  { title: 'HeartbeatAnswer' },
);
export type HeartbeatAnswerWire = Static<typeof heartbeatAnswerSchema>;

export const acknowledgedSchema = Type.Object(
  { acknowledged: Type.Literal(true) },
  { title: 'Acknowledged' },
);

const workerProperties = {
  worker_id: uuidSchema('The worker'),
  name: nullable(Type.String()),
  host: nullable(Type.String()),
  version: nullable(Type.String({ description: 'Which release of its code it runs' })),
  status: Type.Enum(['active', 'draining', 'dead']),
  capabilities: Type.Array(Type.String()),
  task_types: nullable(Type.Array(Type.String(), { description: 'Null: every type' })),
  queues: nullable(Type.Array(Type.String(), { description: 'Null: every queue' })),
  capacity: Type.Integer(),
  current_load: Type.Number({ description: 'Tasks that it runs' }),
  available_capacity: Type.Integer({ description: 'Tasks that it could take now' }),
  memory_usage: nullable(Type.Number({ description: 'In use, as a share of its limit' })),
  event_loop_delay_ms: nullable(Type.Number()),
  cpu_usage: nullable(
    Type.Number({ description: 'Cores used since the heartbeat before: 1 is one core' }),
  ),
  consecutive_failures: Type.Integer({
    description: 'Attempts that failed in a row, up to the last one',
  }),
  drain_requested_at: nullable(timestampSchema('When it was asked to leave')),
  registered_at: timestampSchema('When it came'),
  last_heartbeat_at: timestampSchema('When it was last heard of'),
  benched_until: nullable(
    timestampSchema(
      'It is suspended: it fails while others succeed and gets nothing until then; in the past: it is ' +
        'tried with 3 tasks at a time until one succeeds. Null: it is trusted',
    ),
  ),
};

export const workerSchema = Type.Object(workerProperties, { title: 'Worker' });
export type WorkerWire = Static<typeof workerSchema>;

export const workerDetailSchema = Type.Object(
  {
    ...workerProperties,
    current_tasks: Type.Array(Type.String(), { description: 'What it holds, up to 100 tasks' }),
    health: nullable(jsonObjectSchema('What else its last heartbeat showed')),
  },
  { title: 'WorkerDetail' },
);
export type WorkerDetailWire = Static<typeof workerDetailSchema>;

export const workerPageSchema = Type.Object(
  { items: Type.Array(workerSchema), next_cursor: nextCursorSchema },
  { title: 'WorkerPage' },
);
export type WorkerPageWire = Static<typeof workerPageSchema>;

export const listWorkersQuerySchema = request('ListWorkersQuery', pageProperties);
