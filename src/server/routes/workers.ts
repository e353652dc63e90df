import { emptySchema } from '../../protocol/common-schema.js';
import { workerIdFromWire } from '../../protocol/common-wire.js';
import { defined } from '../../protocol/defined.js';
import { reportAnswerToWire, reportFromWire } from '../../protocol/reports-wire.js';
import {
  acknowledgedSchema,
  heartbeatAnswerSchema,
  heartbeatSchema,
  heldSchema,
  oneOrManyReportAnswersSchema,
  oneOrManyReportsSchema,
  pollAnswerSchema,
  pollSchema,
  progressSchema,
  registeredSchema,
  registrationSchema,
  releasedSchema,
  releaseSchema,
  workerParamsSchema,
} from '../../protocol/workers-schema.js';
import {
  heartbeatAnswerToWire,
  heartbeatFromWire,
  heldFromWire,
  pollAnswerToWire,
  pollFromWire,
  registeredToWire,
  registrationFromWire,
  releasedToWire,
} from '../../protocol/workers-wire.js';
import type { App, RouteParts } from '../app-parts.js';
import { refuseEnded, type OpenRequests } from '../open-requests.js';

const tags = ['Workers'];
const acknowledged = { acknowledged: true } as const;

/** What workers call. */
export function workerRoutes(app: App, { requestBytes }: RouteParts, open: OpenRequests): void {
  app.post(
    '/internal/workers/register',
    {
      // It may bring a JSON Schema for each of its task types.
      bodyLimit: requestBytes,
      schema: {
        tags,
        operationId: 'registerWorker',
        summary: 'Register a worker',
        body: registrationSchema,
        response: { 200: registeredSchema },
      },
      config: { scope: 'worker', confined: 'worker' },
    },
    async ({ api, body }) => registeredToWire(await api.register(registrationFromWire(body))),
  );

  app.post(
    '/internal/workers/:worker_id/poll',
    {
      schema: {
        tags,
        operationId: 'pollTasks',
        summary: 'Take tasks',
        description: 'What it names replaces what was registered, for this poll.',
        params: workerParamsSchema,
        body: pollSchema,
        response: { 200: pollAnswerSchema },
      },
      config: { scope: 'worker', confined: 'worker', refusals: ['worker_unknown'] },
    },
    async ({ api, params, body }, reply) => {
      const poll = pollFromWire(body);
      const signal = (poll.waitMs ?? 0) > 0 ? open.signalFor(reply) : undefined;
      const answer = await api.poll(workerIdFromWire(params.worker_id), poll, signal);
      // What it has taken it is told: nobody else would get it before its lease lapsed.
      if (answer.tasks.length === 0) refuseEnded(signal);
      return pollAnswerToWire(answer);
    },
  );

  app.post(
    '/internal/workers/:worker_id/start',
    {
      schema: {
        tags,
        operationId: 'startTask',
        summary: 'Start a task that was prefetched',
        params: workerParamsSchema,
        body: heldSchema,
        response: { 200: acknowledgedSchema },
      },
      config: { scope: 'worker', confined: 'worker', refusals: ['lease_lost', 'worker_unknown'] },
    },
    async ({ api, params, body }) => {
      await api.start(workerIdFromWire(params.worker_id), heldFromWire(body));
      return acknowledged;
    },
  );

  app.post(
    '/internal/workers/:worker_id/progress',
    {
      schema: {
        tags,
        operationId: 'reportProgress',
        summary: 'Report how far a task is',
        params: workerParamsSchema,
        body: progressSchema,
        response: { 200: acknowledgedSchema },
      },
      config: { scope: 'worker', confined: 'worker', refusals: ['lease_lost', 'worker_unknown'] },
    },
    async ({ api, params, body }) => {
      const progress = defined({ percent: body.progress_percent, message: body.status_message });
      await api.progress(workerIdFromWire(params.worker_id), heldFromWire(body), progress);
      return acknowledged;
    },
  );

  app.post(
    '/internal/workers/:worker_id/result',
    {
      bodyLimit: requestBytes,
      schema: {
        tags,
        operationId: 'reportResults',
        summary: 'Report how tasks ended',
        description:
          'One, or many as { "results": [ … ] }. Sending it again is answered the same. The lease alone decides, also ' +
          'under an id that the worker got when it registered again.',
        params: workerParamsSchema,
        body: oneOrManyReportsSchema,
        response: { 200: oneOrManyReportAnswersSchema },
      },
      config: { scope: 'worker', confined: 'worker', refusals: ['worker_unknown'] },
    },
    async ({ api, params, body }) => {
      const many = 'results' in body;
      const reports = many
        ? body.results.map((report, index) => reportFromWire(report, `/results/${index}`))
        : [reportFromWire(body, '')];
      const answers = await api.report(workerIdFromWire(params.worker_id), reports);
      const results = answers.map(reportAnswerToWire);
      const [first] = results;
      if (first === undefined) throw new Error('a report was not answered');
      return many ? { results } : first;
    },
  );

  app.post(
    '/internal/workers/:worker_id/release',
    {
      bodyLimit: requestBytes,
      schema: {
        tags,
        operationId: 'releaseTasks',
        summary: 'Give tasks back, at no cost',
        params: workerParamsSchema,
        body: releaseSchema,
        response: { 200: releasedSchema },
      },
      config: { scope: 'worker', confined: 'worker', refusals: ['worker_unknown'] },
    },
    async ({ api, params, body }) => {
      const held = body.tasks.map(heldFromWire);
      return releasedToWire(await api.release(workerIdFromWire(params.worker_id), held));
    },
  );

  app.post(
    '/internal/workers/:worker_id/heartbeat',
    {
      bodyLimit: requestBytes,
      schema: {
        tags,
        operationId: 'sendHeartbeat',
        summary: 'Say that it lives, and hear the news',
        params: workerParamsSchema,
        body: heartbeatSchema,
        response: { 200: heartbeatAnswerSchema },
      },
      config: { scope: 'worker', confined: 'worker', refusals: ['worker_unknown'] },
    },
    async ({ api, params, body }) =>
      heartbeatAnswerToWire(
        await api.heartbeat(workerIdFromWire(params.worker_id), heartbeatFromWire(body)),
      ),
  );

  app.post(
    '/internal/workers/:worker_id/deregister',
    {
      schema: {
        tags,
        operationId: 'deregisterWorker',
        summary: 'Leave, and give back what it still holds',
        params: workerParamsSchema,
        body: emptySchema,
        response: { 200: acknowledgedSchema },
      },
      config: { scope: 'worker', confined: 'worker', refusals: ['worker_unknown'] },
    },
    async ({ api, params }) => {
      await api.deregister(workerIdFromWire(params.worker_id));
      return acknowledged;
    },
  );
}
