import { Type } from 'typebox';
import { bounds } from '../../protocol/bounds.js';
import { request } from '../../protocol/common-schema.js';
import { compileCheck } from '../../protocol/compile-check.js';
import { invalidField } from '../../protocol/problem-wire.js';
import { batchAnswerSchema, batchSchema } from '../../protocol/tasks-schema.js';
import { submitOutcomesToWire } from '../../protocol/tasks-wire.js';
import type { App, RouteParts } from '../app-parts.js';
import { parseTaskLines } from '../body-parsers.js';
import { mergeOutcomes, readBatch, readDraftHeaders } from '../task-drafts.js';
import { bodyValidator } from '../validation.js';

/** Each task is checked by itself, so that a bad one does not sink the rest. */
const envelopeSchema = request('BatchEnvelope', {
  tasks: Type.Array(Type.Unknown(), { minItems: 1, maxItems: bounds.batchSize }),
});
const validateEnvelope = bodyValidator(compileCheck(envelopeSchema));

/** In a scope of its own: one task a line is understood nowhere else. */
export function batchRoute(app: App, { taskBytes, requestBytes }: RouteParts): void {
  parseTaskLines(app);
  app.post(
    '/api/v1/tasks/batch',
    {
      bodyLimit: requestBytes,
      validatorCompiler: () => validateEnvelope,
      schema: {
        tags: ['Tasks'],
        operationId: 'submitTasks',
        summary: 'Submit many tasks',
        description:
          'Answered in order; one that is refused does not sink the rest. ' +
          'As application/x-ndjson the body is one task a line.',
        consumes: ['application/json', 'application/x-ndjson'],
        body: batchSchema,
        response: { 200: batchAnswerSchema },
      },
      config: { scope: 'submit', confined: 'queue' },
    },
    async (request) => {
      const { body, headers } = request;
      const draftHeaders = readDraftHeaders(headers);
      if (draftHeaders.idempotencyKey !== null) {
        throw invalidField(
          '/Idempotency-Key',
          'stands for one task: give each its idempotency_key',
        );
      }
      const { drafts, refused } = readBatch(body.tasks, draftHeaders, taskBytes);
      const outcomes = drafts.length === 0 ? [] : await request.api.submitMany(drafts);
      return submitOutcomesToWire(mergeOutcomes(body.tasks.length, refused, outcomes));
    },
  );
}
