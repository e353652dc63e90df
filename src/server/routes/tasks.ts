import { Type } from 'typebox';
import { allows } from '../../domain/scopes.js';
import { taskParamsSchema } from '../../protocol/common-schema.js';
import { taskIdFromWire } from '../../protocol/common-wire.js';
import {
  cancellationSchema,
  explanationSchema,
  getTaskQuerySchema,
  listTasksQuerySchema,
  receiptSchema,
  replaySchema,
  submitHeadersSchema,
  taskChangeSchema,
  taskDraftSchema,
  taskPageSchema,
  taskSchema,
  waitQuerySchema,
} from '../../protocol/tasks-schema.js';
import {
  cancellationToWire,
  explanationToWire,
  receiptToWire,
  replayFromWire,
  taskChangeFromWire,
  taskPageToWire,
  taskSearchFromWire,
  taskToWire,
} from '../../protocol/tasks-wire.js';
import type { Receipt } from '../../protocol/tasks-api.js';
import type { App, RouteParts } from '../app-parts.js';
import { refuseEnded, type OpenRequests } from '../open-requests.js';
import { readDraft, readDraftHeaders } from '../task-drafts.js';
import { listOf } from './page.js';

const tags = ['Tasks'];
const defaultWaitSeconds = 30;

export function taskRoutes(app: App, { taskBytes }: RouteParts, open: OpenRequests): void {
  app.post(
    '/api/v1/tasks',
    {
      bodyLimit: taskBytes,
      schema: {
        tags,
        operationId: 'submitTask',
        summary: 'Submit a task',
        description: 'The same idempotency key again answers 200 with the same task.',
        headers: submitHeadersSchema,
        body: taskDraftSchema,
        response: { 201: receiptSchema, 200: receiptSchema },
      },
      config: {
        scope: 'submit',
        confined: 'queue',
        isShed: true,
        refusals: ['idempotency_conflict', 'too_many_lanes'],
      },
    },
    async (request, reply) => {
      const { body, headers } = request;
      const draft = readDraft(body, readDraftHeaders(headers), taskBytes);
      const receipt = await request.api.submit(draft);
      return reply.code(receipt.created ? 201 : 200).send(receiptToWire(receipt));
    },
  );

  app.get(
    '/api/v1/tasks',
    {
      schema: {
        tags,
        operationId: 'listTasks',
        summary: 'List tasks, newest first',
        description:
          'One page looks at a bounded number of tasks: it may hold fewer than asked for, or none, while ' +
          '`next_cursor` is not null.',
        querystring: listTasksQuerySchema,
        response: { 200: taskPageSchema },
      },
      config: { scope: 'read', confined: 'filtered' },
    },
    async ({ api, query }) =>
      taskPageToWire(await api.listTasks(taskSearchFromWire(query), listOf(query))),
  );

  app.get(
    '/api/v1/tasks/:task_id',
    {
      schema: {
        tags,
        operationId: 'getTask',
        summary: 'Get a task',
        params: taskParamsSchema,
        querystring: getTaskQuerySchema,
        response: { 200: taskSchema },
      },
      config: { scope: 'read', confined: 'task', refusals: ['task_not_found'] },
    },
    async ({ api, params, query }) => {
      const history = query.include === 'history';
      return taskToWire(await api.getTask(taskIdFromWire(params.task_id), { history }));
    },
  );

  app.get(
    '/api/v1/tasks/:task_id/wait',
    {
      exposeHeadRoute: false,
      schema: {
        tags,
        operationId: 'waitForTask',
        summary: 'Wait until a task has ended',
        description: 'Answers when it ended, or with its state when the time is over.',
        params: taskParamsSchema,
        querystring: waitQuerySchema,
        response: { 200: taskSchema },
      },
      config: { scope: 'read', confined: 'task', refusals: ['task_not_found'] },
    },
    async ({ api, params, query }, reply) => {
      const timeoutMs = (query.timeout_seconds ?? defaultWaitSeconds) * 1000;
      const signal = open.signalFor(reply);
      const task = await api.waitForTask(taskIdFromWire(params.task_id), timeoutMs, signal);
      refuseEnded(signal);
      return taskToWire(task);
    },
  );

  app.get(
    '/api/v1/tasks/:task_id/explain',
    {
      schema: {
        tags,
        operationId: 'explainTask',
        summary: 'Why a task is not running',
        params: taskParamsSchema,
        response: { 200: explanationSchema },
      },
      config: { scope: 'read', confined: 'task', refusals: ['task_not_found'] },
    },
    async ({ api, params }) =>
      explanationToWire(await api.explainTask(taskIdFromWire(params.task_id))),
  );

  app.delete(
    '/api/v1/tasks/:task_id',
    {
      schema: {
        tags,
        operationId: 'cancelTask',
        summary: 'Cancel a task',
        description:
          'Again gives the same answer. A dead letter that halts its workflow lets it go on.',
        params: taskParamsSchema,
        response: { 200: cancellationSchema },
      },
      config: { scope: 'submit', confined: 'task', refusals: ['task_not_found', 'task_ended'] },
    },
    async ({ api, params }) =>
      cancellationToWire(await api.cancelTask(taskIdFromWire(params.task_id))),
  );

  app.patch(
    '/api/v1/tasks/:task_id',
    {
      schema: {
        tags,
        operationId: 'changeTask',
        summary: 'Change a task that has not started',
        params: taskParamsSchema,
        body: taskChangeSchema,
        description: 'A key that may not read is answered with the receipt.',
        response: { 200: Type.Union([taskSchema, receiptSchema]) },
      },
      config: {
        scope: 'submit',
        confined: 'task',
        refusals: ['task_not_found', 'task_started', 'task_ended'],
      },
    },
    async ({ api, holder, params, body }) => {
      const taskId = taskIdFromWire(params.task_id);
      const changed = await api.changeTask(taskId, taskChangeFromWire(body));
      const mayRead = holder === null || allows(holder.scopes, 'read');
      return mayRead && 'parameters' in changed ? taskToWire(changed) : toReceiptWire(changed);
    },
  );

  app.post(
    '/api/v1/tasks/:task_id/replay',
    {
      schema: {
        tags,
        operationId: 'replayTask',
        summary: 'Bring an ended task back',
        description: 'A dead letter, or one that failed or was cancelled.',
        params: taskParamsSchema,
        body: replaySchema,
        response: { 200: taskSchema },
      },
      config: {
        scope: 'admin',
        confined: 'task',
        refusals: ['task_not_found', 'task_not_ended', 'task_completed'],
      },
    },
    async ({ api, params, body }) =>
      taskToWire(await api.replayTask(taskIdFromWire(params.task_id), replayFromWire(body))),
  );
}

/** Of a task that was there before; its place in line is not looked up. */
function toReceiptWire(
  task: Pick<Receipt, 'taskId' | 'status' | 'queue' | 'priority' | 'traceId' | 'createdAt'>,
) {
  const { taskId, status, queue, priority, traceId, createdAt } = task;
  const known = { taskId, status, queue, priority, traceId, createdAt };
  return receiptToWire({
    ...known,
    queuePosition: null,
    estimatedWaitSeconds: null,
    estimatedStartTime: null,
    created: false,
  });
}
