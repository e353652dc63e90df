import { Type, type Static, type TObject } from 'typebox';
import { bounds } from './bounds.js';
import {
  costSchema,
  exampleTaskId,
  jsonObjectSchema,
  jsonValueSchema,
  labelSchema,
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
import { traceparentPattern } from './patterns.js';
import { problemSchema } from './problem-schema.js';
import { waitReasonKinds } from './tasks-api.js';

const oneYearSeconds = 31_536_000;
const exampleTraceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

export const taskDraftSchema = request(
  'TaskDraft',
  {
    task_type: nameSchema('Selects the handler in a worker'),
    queue: Type.Optional(
      nameSchema('Created on first use; when absent that of the task type, else "default"'),
    ),
    priority: Type.Optional(prioritySchema),
    parameters: Type.Optional(jsonObjectSchema('What the handler gets: any JSON object')),
    required_capabilities: Type.Optional(
      Type.Array(labelSchema('A capability'), {
        maxItems: 20,
        description: 'Only a worker that has all of them takes the task',
        examples: [['gpu']],
      }),
    ),
    timeout_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: bounds.timeoutSeconds,
        description:
          'How long one attempt may run; when absent as its type says, else by priority 300, 600 or 900',
      }),
    ),
    max_retries: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: bounds.maxRetries,
        description: 'When absent as its type says, else by priority 5, 3 or 2',
      }),
    ),
    idempotency_key: Type.Optional(
      textSchema('The same key within 24 hours is the same task; or the Idempotency-Key header'),
    ),
    workflow_id: Type.Optional(
      textSchema('Tasks of one workflow run one at a time, in submit order'),
    ),
    workflow_on_failure: Type.Optional(
      Type.Enum(['halt', 'continue'], {
        description: 'What a failure of this member does to its workflow; "halt" when absent',
      }),
    ),
    run_at: Type.Optional(
      timestampSchema('Not before then; at most 366 days ahead; excludes delay_seconds'),
    ),
    delay_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 10 * oneYearSeconds,
        description: 'Not before so long from now; at most 366 days; excludes run_at',
      }),
    ),
    dispatch_deadline_seconds: Type.Optional(
      nullable(
        Type.Integer({
          minimum: 1,
          maximum: 10 * oneYearSeconds,
          description: 'Ends as failed when no worker took it so long after it became eligible',
        }),
      ),
    ),
    cost: Type.Optional(
      costSchema('Units that it costs; "requests" is not for it to say: each task costs one'),
    ),
    user_id: Type.Optional(textSchema('Whose task it is')),
    tags: Type.Optional(
      Type.Array(textSchema('A tag', bounds.nameLength), {
        maxItems: 50,
        description: 'To find it by',
      }),
    ),
    trace_id: Type.Optional(
      textSchema('To find its log lines by; that of traceparent, or its own id, when absent'),
    ),
    traceparent: Type.Optional(
      Type.String({
        pattern: traceparentPattern,
        description: 'W3C trace context: the span that submits it; or the traceparent header',
        examples: [exampleTraceparent],
      }),
    ),
  },
  {
    description: `A task to submit: at most ${bounds.taskBytes / 1024} KiB of JSON.`,
    examples: [
      {
        task_type: 'chat',
        queue: 'gpt-4o',
        priority: 'high',
        parameters: { prompt: 'Say hello' },
        cost: { tokens: 1200 },
        idempotency_key: 'doc-17',
      },
    ],
  },
);
export type TaskDraftWire = Static<typeof taskDraftSchema>;

export const batchSchema = request(
  'Batch',
  { tasks: Type.Array(taskDraftSchema, { minItems: 1, maxItems: bounds.batchSize }) },
  { examples: [{ tasks: [{ task_type: 'chat' }, { task_type: 'chat', priority: 'low' }] }] },
);

export const submitHeadersSchema = Type.Object({
  'idempotency-key': Type.Optional(textSchema('Stands for idempotency_key in the body')),
  traceparent: Type.Optional(
    Type.String({
      description: 'Stands for traceparent in the body; ignored when it is not well-formed',
    }),
  ),
});

export const receiptSchema = Type.Object(
  {
    task_id: uuidSchema('The task'),
    status: taskStateSchema,
    queue: Type.String(),
    priority: prioritySchema,
    queue_position: nullable(
      Type.Integer({
        description:
          'Tasks of its queue that would be taken before it: exact up to 1,000, then a lower bound; null in batches',
      }),
    ),
    estimated_wait_seconds: nullable(Type.Number({ description: 'Null when unknown' })),
    estimated_start_time: nullable(
      timestampSchema('Now and the estimated wait; null when unknown'),
    ),
    trace_id: Type.String(),
    created_at: timestampSchema('When it was accepted'),
  },
  { title: 'Receipt' },
);
export type ReceiptWire = Static<typeof receiptSchema>;

export const batchAnswerSchema = Type.Object(
  {
    results: Type.Array(
      Type.Union([
        Type.Object({ task: receiptSchema, created: Type.Boolean() }),
        Type.Object({ error: problemSchema }),
      ]),
      { description: 'One for each task, in order' },
    ),
  },
  { title: 'BatchAnswer' },
);
export type BatchAnswerWire = Static<typeof batchAnswerSchema>;

export const attemptErrorSchema = Type.Object(
  {
    code: Type.String(),
    message: Type.String(),
    retriable: Type.Boolean(),
    retry_after_seconds: Type.Optional(Type.Number()),
    details: Type.Optional(jsonValueSchema('Whatever the worker added')),
  },
  { title: 'AttemptError' },
);
export type AttemptErrorWire = Static<typeof attemptErrorSchema>;

const stateChangeSchema = Type.Object(
  {
    state: taskStateSchema,
    at: timestampSchema('When'),
    worker_id: Type.Optional(Type.String()),
    attempt: Type.Optional(Type.Integer()),
    reason: Type.Optional(Type.String()),
  },
  { title: 'StateChange' },
);
export type StateChangeWire = Static<typeof stateChangeSchema>;

const attemptSchema = Type.Object(
  {
    attempt: Type.Integer(),
    worker_id: Type.String(),
    started_at: timestampSchema('When its worker took it'),
    ended_at: timestampSchema('When it ended'),
    outcome: Type.Enum([
      'succeeded',
      'failed',
      'timed_out',
      'lapsed',
      'released',
      'deferred',
      'cancelled',
    ]),
    error: Type.Optional(attemptErrorSchema),
  },
  { title: 'Attempt' },
);
export type AttemptWire = Static<typeof attemptSchema>;

export const taskSchema = Type.Object(
  {
    task_id: uuidSchema('A UUIDv7: sorts by time of submit'),
    task_type: Type.String(),
    queue: Type.String(),
    priority: prioritySchema,
    effective_priority: Type.Enum(['high', 'medium', 'low'], {
      description: 'How urgent its age has made it by now',
    }),
    status: taskStateSchema,
    parameters: jsonObjectSchema('As submitted'),
    required_capabilities: Type.Array(Type.String()),
    retry_count: Type.Integer({ description: 'Attempts that failed' }),
    max_retries: Type.Integer(),
    attempt: Type.Integer({ description: 'Times that a worker took it' }),
    created_at: timestampSchema('When it was accepted'),
    run_at: nullable(timestampSchema('Not before then')),
    queued_at: nullable(timestampSchema('When it came into the ready queue')),
    assigned_at: nullable(timestampSchema('When a worker took it')),
    started_at: nullable(timestampSchema('When its worker began')),
    completed_at: nullable(timestampSchema('When it ended, in whatever state')),
    assigned_worker_id: nullable(Type.String()),
    progress: nullable(Type.Object({ percent: Type.Number(), message: nullable(Type.String()) })),
    result: jsonValueSchema('What its handler answered; null when there is none'),
    error: nullable(attemptErrorSchema),
    timeout_seconds: Type.Integer(),
    dispatch_deadline: nullable(timestampSchema('Ends as failed when not taken by then')),
    workflow_id: nullable(Type.String()),
    idempotency_key: nullable(Type.String()),
    cost: nullable(costSchema('Units that it was said to cost')),
    usage: nullable(costSchema('Units that it did cost')),
    user_id: nullable(Type.String()),
    tags: Type.Array(Type.String()),
    trace_id: Type.String({ description: 'As submitted; else that of traceparent, or its own id' }),
    eligible_at: timestampSchema('When it could first be taken: age and order count from it'),
    current_state_duration_seconds: Type.Number(),
    execution_duration_seconds: nullable(
      Type.Number({
        description: 'How long the present or last attempt has run; null before the first',
      }),
    ),
    deferrals: Type.Integer({
      description:
        'Attempts that went back without costing a retry, because the service pushed back',
    }),
    returns: Type.Integer({ description: 'Times that a worker took it and never started it' }),
    state_history: Type.Optional(
      Type.Array(stateChangeSchema, { description: 'Oldest first; with include=history' }),
    ),
    attempts: Type.Optional(
      Type.Array(attemptSchema, { description: 'Oldest first; with include=history' }),
    ),
  },
  { title: 'Task', description: 'A task. What does not apply is null.' },
);
export type TaskWire = Static<typeof taskSchema>;

const { parameters, result, ...lightProperties } = taskSchema.properties;

export const listedTaskSchema = Type.Object(
  { ...lightProperties, parameters: Type.Optional(parameters), result: Type.Optional(result) },
  {
    title: 'ListedTask',
    description: 'A task in a list: with parameters and result only if `include` names them.',
  },
);
export type ListedTaskWire = Static<typeof listedTaskSchema>;

export const taskPageSchema = Type.Object(
  {
    items: Type.Array(listedTaskSchema),
    next_cursor: nextCursorSchema,
    searched_back_to: nullable(
      timestampSchema(
        'All matches that were submitted later are in this page or an earlier one; null: all tasks were looked at',
      ),
    ),
  },
  { title: 'TaskPage' },
);
export type TaskPageWire = Static<typeof taskPageSchema>;

export const getTaskQuerySchema = request('GetTaskQuery', {
  include: Type.Optional(
    Type.Enum(['history'], { description: '"history" adds state_history and attempts' }),
  ),
});

export const waitQuerySchema = request('WaitQuery', {
  timeout_seconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: bounds.waitSeconds, description: '30 when absent' }),
  ),
});

export const includeProperties = {
  include: Type.Optional(
    Type.Enum(['parameters', 'result', 'parameters,result', 'result,parameters'], {
      description: 'What else to answer of each task; a page ends early when it passes 8 MiB',
    }),
  ),
};

export const filterProperties = {
  status: Type.Optional(taskStateSchema),
  queue: Type.Optional(nameSchema('Of this queue')),
  task_type: Type.Optional(nameSchema('Of this type')),
  user_id: Type.Optional(textSchema('Of this user')),
  workflow_id: Type.Optional(textSchema('Of this workflow')),
  tag: Type.Optional(textSchema('With this tag', bounds.nameLength)),
};

export type TaskFilterWire = Static<TObject<typeof filterProperties>>;

export const listTasksQuerySchema = request('ListTasksQuery', {
  ...filterProperties,
  text: Type.Optional(
    textSchema(
      'Whose parameters hold this text: a plain part of their JSON, capitals and all. One page looks at 10,000 tasks ' +
        'and 16 MiB of parameters at most',
      bounds.searchedTextLength,
    ),
  ),
  ...pageProperties,
  ...includeProperties,
});
export type TaskSearchWire = Omit<
  Static<typeof listTasksQuerySchema>,
  'limit' | 'cursor' | 'include'
>;

export const explanationSchema = Type.Object(
  {
    task_id: uuidSchema('The task'),
    status: taskStateSchema,
    reasons: Type.Array(
      Type.Object(
        {
          kind: Type.Enum([...waitReasonKinds]),
          detail: Type.String({ description: 'A sentence for a person' }),
          until: Type.Optional(timestampSchema('When this reason ends, where that is known')),
        },
        { title: 'WaitReason' },
      ),
      { description: 'Empty when nothing keeps it' },
    ),
    queue_position: nullable(
      Type.Integer({
        description:
          'Tasks of its queue that would be taken before it: exact up to 1,000, then a lower bound; null when it does not stand in line',
      }),
    ),
    estimated_wait_seconds: nullable(Type.Number({ description: 'Null when unknown' })),
    estimated_start_time: nullable(
      timestampSchema('Now and the estimated wait; null when unknown'),
    ),
    notes: Type.Optional(
      Type.Array(Type.String(), {
        description: 'What is worth knowing but keeps it from nothing; absent when there is none',
      }),
    ),
  },
  { title: 'Explanation', description: 'Why a task is not running.' },
);
export type ExplanationWire = Static<typeof explanationSchema>;

export const cancellationSchema = Type.Object(
  {
    task_id: uuidSchema('The task'),
    status: Type.Literal('cancelled'),
    was_executing: Type.Boolean(),
    worker_notified: Type.Boolean(),
  },
  { title: 'Cancellation' },
);
export type CancellationWire = Static<typeof cancellationSchema>;

export const taskChangeSchema = request(
  'TaskChange',
  {
    priority: Type.Optional(prioritySchema),
    run_at: Type.Optional(timestampSchema('Not before then; at most 366 days ahead')),
  },
  { minProperties: 1, examples: [{ priority: 'high' }] },
);
export type TaskChangeWire = Static<typeof taskChangeSchema>;

export const replaySchema = request(
  'Replay',
  {
    reset_retry_count: Type.Optional(
      Type.Boolean({ description: 'Whether it gets all its retries again; true when absent' }),
    ),
    new_priority: Type.Optional(prioritySchema),
  },
  { examples: [{ reset_retry_count: true, new_priority: 'high' }] },
);
export type ReplayWire = Static<typeof replaySchema>;

export const eventsQuerySchema = request('EventsQuery', {
  queue: Type.Optional(nameSchema('Only tasks of this queue')),
  task_id: Type.Optional(uuidSchema('Only this task')),
});

/** The data of a `task` event. */
export const taskEventSchema = Type.Object(
  {
    task_id: uuidSchema('The task'),
    task_type: Type.String(),
    queue: Type.String(),
    priority: prioritySchema,
    from: Type.Enum(['new', ...taskStateSchema.enum]),
    status: taskStateSchema,
    at: timestampSchema('When'),
    attempt: Type.Integer(),
    reason: Type.Optional(Type.String()),
  },
  { title: 'TaskEvent', examples: [{ task_id: exampleTaskId, status: 'completed' }] },
);
export type TaskEventWire = Static<typeof taskEventSchema>;
