import { Type } from 'typebox';
import { SluiceError } from '../../domain/errors.js';
import type { App, RouteParts } from '../app-parts.js';

const tags = ['Operations'];
const statusSchema = (status: string) => Type.Object({ status: Type.Literal(status) });
const readySchema = Type.Object({
  status: Type.Literal('ready'),
  replica: Type.Optional(
    Type.Object({
      leads: Type.Boolean({ description: 'Whether this server leads' }),
      leader: Type.Union([Type.String(), Type.Null()], { description: 'Names the one that leads' }),
      leader_since: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
      leader_changes: Type.Integer({ description: 'That this server saw' }),
      followers: Type.Integer({ description: 'Processes that this server leads' }),
      delivery: Type.Union([Type.Literal('listen'), Type.Literal('poll')], {
        description: 'Whether Postgres tells of mail, or it is polled for',
      }),
      calls_answered: Type.Integer(),
      calls_lost: Type.Integer(),
      round_trip_ms: Type.Object({
        median: Type.Union([Type.Number(), Type.Null()]),
        p99: Type.Union([Type.Number(), Type.Null()]),
      }),
    }),
  ),
});
const liveSchema = Type.Object({
  status: Type.Literal('live'),
  notes: Type.Optional(Type.Array(Type.String(), { description: 'What does not go well' })),
});
const degradedSchema = Type.Object({ status: Type.Literal('degraded'), reason: Type.String() });

/** None of them changes anything. */
export function operationRoutes(app: App, { health, metrics, doors, drain }: RouteParts): void {
  app.get(
    '/healthz',
    {
      schema: {
        tags,
        operationId: 'getHealth',
        summary: 'The process is live',
        description: 'Degraded: it accepts tasks and results, and can hand nothing out.',
        response: { 200: Type.Union([liveSchema, degradedSchema]) },
      },
      config: { scope: 'open' },
    },
    () => {
      const reason = health.degradation();
      const notes = [...(health.notes?.() ?? [])];
      const live = { status: 'live' as const, ...(notes.length === 0 ? {} : { notes }) };
      return reason === null ? live : { status: 'degraded' as const, reason };
    },
  );

  app.get(
    '/readyz',
    {
      schema: {
        tags,
        operationId: 'getReadiness',
        summary: 'This server can serve',
        description:
          'Postgres takes writes, the ready queue answers, and it was not told to stop. Without Redis the answer says ' +
          'which of the servers leads, and how their mail flows.',
        response: { 200: readySchema },
      },
      config: { scope: 'open', refusals: ['unavailable'] },
    },
    async () => {
      if (drain.hasBegun) throw new SluiceError('unavailable', 'This server was told to stop');
      const readiness = await health.readiness();
      if (!readiness.ready) throw new SluiceError('unavailable', readiness.reason);
      const replica = health.replica?.() ?? null;
      return { status: 'ready' as const, ...(replica === null ? {} : { replica }) };
    },
  );

  app.get(
    '/healthz/progress',
    {
      schema: {
        tags,
        operationId: 'getProgress',
        summary: 'Work is being done',
        description: '503 when capacity is free, work is ready and nothing was claimed for 60 s.',
        response: { 200: statusSchema('progressing') },
      },
      config: { scope: 'open', refusals: ['unavailable'] },
    },
    async () => {
      const progress = await health.progress();
      if (!progress.progressing) throw new SluiceError('unavailable', progress.reason);
      return { status: 'progressing' };
    },
  );

  app.get(
    '/metrics',
    {
      schema: {
        tags,
        operationId: 'getMetrics',
        summary: 'Metrics, as Prometheus reads them',
        produces: ['text/plain'],
        response: { 200: Type.String() },
      },
      config: { scope: doors.openMetrics ? 'open' : 'read', confined: 'refused' },
    },
    async (_request, reply) =>
      reply
        .header('content-type', metrics.contentType)
        .serializer(String)
        .send(await metrics.text()),
  );
}
