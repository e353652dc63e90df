import { fastify, LogController, type FastifyBaseLogger } from 'fastify';
import { bounds } from '../protocol/bounds.js';
import type { App, AppOptions, AppParts, Doors } from './app-parts.js';
import { AnswerBudget } from '../engine/answer-budget.js';
import { countAnswers } from './answers.js';
import { Auth } from './auth.js';
import { BodyBudget } from './body-budget.js';
import { parseJsonBodies } from './body-parsers.js';
import { offerApi } from './callers-api.js';
import { connectionLimits } from './connection-limits.js';
import { Connections } from './connections.js';
import { Drain } from './drain.js';
import { allowOrigins } from './cors.js';
import { KnownRoutes } from './known-routes.js';
import { LiveEvents } from './live-events.js';
import { Lobby } from './lobby.js';
import { OpenRequests } from './open-requests.js';
import { registerOpenApi } from './openapi.js';
import { Overload } from './overload.js';
import { noKeys } from './ports.js';
import { refuseAddress, sendProblem } from './problem.js';
import { watchRouteScopes } from './route-scopes.js';
import { alertRoutes } from './routes/alerts.js';
import { batchRoute } from './routes/batch.js';
import { auditRoutes } from './routes/audit.js';
import { bulkRoutes } from './routes/bulk.js';
import { deadLetterRoutes } from './routes/dead-letters.js';
import { eventRoutes } from './routes/events.js';
import { fleetRoutes } from './routes/fleet.js';
import { keyRoutes } from './routes/keys.js';
import { limitRoutes } from './routes/limits.js';
import { operationRoutes } from './routes/operations.js';
import { pageRoutes } from './routes/pages.js';
import { queueRoutes } from './routes/queues.js';
import { scalingRoutes } from './routes/scaling.js';
import { statisticsRoutes } from './routes/statistics.js';
import { taskTypeRoutes } from './routes/task-types.js';
import { taskRoutes } from './routes/tasks.js';
import { workerRoutes } from './routes/workers.js';
import { setSecurityHeaders } from './security-headers.js';
import { signInRoutes } from './sign-in.js';
import { validatorCompiler } from './validation.js';

const closedDoors: Doors = { corsOrigins: [], openMetrics: false, trustProxy: [] };
const smallBodyBytes = 1024 * 1024;

/** Everything but the listening. Closing it ends long-polls and event streams at once. */
export function buildApp(options: AppOptions): App {
  const parts = {
    taskBytes: bounds.taskBytes,
    requestBytes: bounds.requestBytes,
    ...options,
    connections: { ...connectionLimits, ...options.connections },
    keys: options.keys ?? noKeys,
    doors: { ...closedDoors, ...options.doors },
    overload: options.overload ?? new Overload(),
    drain: options.drain ?? new Drain(),
    answers: options.answers ?? new AnswerBudget(),
    environment: options.environment ?? null,
  };
  const connections = new Connections(parts.connections);
  const app = createApp(parts, connections);
  const lobby = new Lobby();
  const open = new OpenRequests(parts.keys);
  const auth = new Auth(parts.keys, parts.doors);
  const live = new LiveEvents(parts);
  const known = new KnownRoutes();
  known.watch(app);
  watchRouteScopes(app);
  lobby.watch(app);
  setSecurityHeaders(app);
  allowOrigins(app, parts.doors.corsOrigins);
  parts.drain.watch(app);
  parts.drain.onBegin(() => open.endAll());
  app.addHook('preClose', (done) => {
    open.stop();
    done();
  });
  connections.watch(app);
  auth.watch(app);
  offerApi(app, parts.api);
  parts.overload.watch(app, lobby);
  new BodyBudget(parts.requestBytes).watch(app);
  countAnswers(app, parts.answers);
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) known.refuse(request, reply);
    else done();
  });
  registerOpenApi(app);
  // After the plugin above has loaded: it hears of each route as it is added.
  app.register((scope: App, _options, done) => {
    taskRoutes(scope, parts, open);
    bulkRoutes(scope);
    eventRoutes(scope, live, open);
    taskTypeRoutes(scope);
    queueRoutes(scope);
    limitRoutes(scope);
    statisticsRoutes(scope);
    alertRoutes(scope);
    scalingRoutes(scope);
    deadLetterRoutes(scope);
    workerRoutes(scope, parts, open);
    fleetRoutes(scope);
    operationRoutes(scope, parts);
    keyRoutes(scope);
    auditRoutes(scope);
    pageRoutes(scope, parts, auth);
    done();
  });
  app.register((scope: App, _options, done) => {
    batchRoute(scope, parts);
    done();
  });
  app.register((scope: App, _options, done) => {
    signInRoutes(scope, parts, auth);
    done();
  });
  return app;
}

function createApp({ log, requestBytes, doors }: AppParts, connections: Connections): App {
  const loggerInstance: FastifyBaseLogger = log;
  const app: App = fastify({
    loggerInstance,
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'request_id',
    }),
    bodyLimit: Math.min(smallBodyBytes, requestBytes),
    ...connections.serverOptions(),
    trustProxy: doors.trustProxy.length === 0 ? false : [...doors.trustProxy],
    // Refused by our own hook, as a problem document.
    return503OnClosing: false,
    // A name of 200 characters, percent-encoded.
    routerOptions: { maxParamLength: 600 },
    frameworkErrors: refuseAddress,
    clientErrorHandler: (error, socket) => connections.refuseMalformed(error, socket),
  });
  parseJsonBodies(app);
  app.setErrorHandler(sendProblem);
  app.setValidatorCompiler(validatorCompiler);
  // The mappings build exactly what is answered; a compiled serializer would drop in silence what
  // a schema forgot, and walks unions with a validator, which is slower than JSON.stringify.
  app.setSerializerCompiler(() => JSON.stringify);
  return app;
}
