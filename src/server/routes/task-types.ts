import {
  listTaskTypesQuerySchema,
  taskTypePageSchema,
  taskTypeParamsSchema,
  taskTypeSchema,
} from '../../protocol/task-types-schema.js';
import { taskTypePageToWire, taskTypeToWire } from '../../protocol/task-types-wire.js';
import type { App } from '../app-parts.js';
import { pageOf } from './page.js';

const tags = ['Task types'];

export function taskTypeRoutes(app: App): void {
  app.get(
    '/api/v1/task-types',
    {
      schema: {
        tags,
        operationId: 'listTaskTypes',
        summary: 'List task types: what their submits get that leave it out',
        description: 'As workers define them when they register. Without their JSON Schemas.',
        querystring: listTaskTypesQuerySchema,
        response: { 200: taskTypePageSchema },
      },
      config: { scope: 'read', confined: 'filtered' },
    },
    async ({ api, query }) => taskTypePageToWire(await api.listTaskTypes(pageOf(query))),
  );

  app.get(
    '/api/v1/task-types/:name',
    {
      schema: {
        tags,
        operationId: 'getTaskType',
        summary: 'Get a task type, with the JSON Schema of its parameters',
        params: taskTypeParamsSchema,
        response: { 200: taskTypeSchema },
      },
      config: { scope: 'read', confined: 'task', refusals: ['task_type_not_found'] },
    },
    async ({ api, params }) => taskTypeToWire(await api.getTaskType(params.name)),
  );
}
