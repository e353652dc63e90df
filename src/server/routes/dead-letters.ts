import { taskParamsSchema } from '../../protocol/common-schema.js';
import { taskIdFromWire } from '../../protocol/common-wire.js';
import {
  deadLetterAnalysisSchema,
  deadLetterPageSchema,
  listDeadLettersQuerySchema,
  replayDeadLettersSchema,
  replayedSchema,
} from '../../protocol/dead-letters-schema.js';
import {
  deadLetterAnalysisToWire,
  deadLetterFilterFromWire,
  deadLetterPageToWire,
  deadLetterReplayFromWire,
  replayedToWire,
} from '../../protocol/dead-letters-wire.js';
import { replaySchema, taskSchema } from '../../protocol/tasks-schema.js';
import { replayFromWire, taskToWire } from '../../protocol/tasks-wire.js';
import type { App } from '../app-parts.js';
import { listOf } from './page.js';

const tags = ['Dead letters'];

export function deadLetterRoutes(app: App): void {
  app.get(
    '/api/v1/dlq',
    {
      schema: {
        tags,
        operationId: 'listDeadLetters',
        summary: 'List dead letters',
        querystring: listDeadLettersQuerySchema,
        response: { 200: deadLetterPageSchema },
      },
      config: { scope: 'read', confined: 'filtered' },
    },
    async ({ api, query }) =>
      deadLetterPageToWire(
        await api.listDeadLetters(deadLetterFilterFromWire(query), listOf(query)),
      ),
  );

  app.get(
    '/api/v1/dlq/analysis',
    {
      schema: {
        tags,
        operationId: 'analyzeDeadLetters',
        summary: 'Dead letters by pattern',
        description:
          'Grouped by task type, error code and message, with numbers, ids and the like left out of ' +
          'the message. A dead letter is counted within seconds.',
        response: { 200: deadLetterAnalysisSchema },
      },
      config: { scope: 'read', confined: 'filtered' },
    },
    async ({ api }) => deadLetterAnalysisToWire(await api.analyseDeadLetters()),
  );

  app.post(
    '/api/v1/dlq/replay',
    {
      schema: {
        tags,
        operationId: 'replayDeadLetters',
        summary: 'Bring back all dead letters that match a filter',
        description:
          'Without a filter: all of them. They become due one after the other, `per_second` of ' +
          'them. One call brings back 10,000 at most; call again with `cursor` while ' +
          '`next_cursor` is not null.',
        body: replayDeadLettersSchema,
        response: { 200: replayedSchema },
      },
      config: { scope: 'admin', confined: 'filtered' },
    },
    async ({ api, body }) => {
      const filter = deadLetterFilterFromWire(body);
      return replayedToWire(await api.replayDeadLetters(filter, deadLetterReplayFromWire(body)));
    },
  );

  app.post(
    '/api/v1/dlq/:task_id/replay',
    {
      schema: {
        tags,
        operationId: 'replayDeadLetter',
        summary: 'Bring back a dead letter',
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
