import { setTimeout as delay } from 'node:timers/promises';
import { replicaStatus } from './replica-status.js';
import type { Engine, OpenEngineOptions } from '../engine/open-engine.js';
import { openEngine } from '../engine/open-engine.js';
import { alertTarget } from '../engine/alerts.js';
import { isLoopback } from '../runtime/config.js';
import { silentLog } from '../runtime/log.js';
import { withAlertMetrics } from './alert-metrics.js';
import { buildApp } from './app.js';
import type { Doors } from './app-parts.js';
import { Drain } from './drain.js';
import { createMetrics } from './metrics.js';
import { Overload } from './overload.js';
import type { ServerHealth } from './ports.js';
import { Asking } from './provisioner/asking.js';
import type { Provisioner } from './provisioner/provisioner.js';
import { WebhookSender, type WebhookTarget } from './webhooks/sender.js';

export interface ServeOptions extends Omit<OpenEngineOptions, 'alerts'> {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** More are told that there are too many. Default 10,000. */
  readonly maxConnections?: number;
  /** Whom to ask for workers, for a server at this address. */
  readonly provisioner?: (url: string) => Provisioner;
  readonly doors?: Partial<Doors>;
  /** How often the alert rules are evaluated. Default 10,000; 0: never. */
  readonly alertIntervalMs?: number;
  /** Who is told when an alert fires and when it is over. */
  readonly alertWebhook?: WebhookTarget;
  /** Shown as a badge in the dashboard. */
  readonly environment?: string;
}

const defaultAlertIntervalMs = 10_000;

export interface CloseOptions {
  /**
   * How long it still answers first: until load balancers know, and clients have moved to other connections.
   * Absent: it closes when what is under way is answered.
   */
  readonly drainMs?: number;
}

/**
 * Connections that the system holds until the server has time for them. Of Node's 511 a crowd leaves
 * none, and whoever comes then, a health check too, tries again after one second, three, seven.
 */
const backlog = 4_096;

/** Whoever reached the port could submit and read tasks. */
class NoKeysError extends Error {
  override readonly name = 'NoKeysError';
}

export interface RunningServer {
  readonly url: string;
  readonly engine: Engine;
  /** As /readyz answers. */
  readiness(): ReturnType<ServerHealth['readiness']>;
  /** Ends long-polls and event streams, then the engine, then the database. */
  close(options?: CloseOptions): Promise<void>;
}

/** The composition root: an engine and the HTTP server in front of it. */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  const log = options.log ?? silentLog;
  const engine = await openEngine({ ...options, ...alertOptions(options) });
  let asking: Asking | null = null;
  const sender = openSender(engine, options);
  try {
    await engine.keys.watch();
    if (!engine.keys.areNeeded()) refuseToBeReached(options.host);
    const overload = new Overload({
      onRefused: () => {
        engine.noteShed();
      },
    });
    const drain = new Drain();
    const counted = createMetrics(engine, engine, () => engine.refused());
    const metrics = withAlertMetrics(counted, engine);
    const { maxConnections } = options;
    const health = healthOf(engine, () => asking);
    const app = buildApp({
      api: engine,
      health,
      events: engine,
      metrics,
      log,
      keys: engine.keys,
      overload,
      drain,
      answers: engine.answers,
      ...(options.doors === undefined ? {} : { doors: options.doors }),
      ...(options.environment === undefined ? {} : { environment: options.environment }),
      ...(maxConnections === undefined ? {} : { connections: { maxConnections } }),
    });
    await app.listen({ host: options.host, port: options.port, backlog });
    const [address] = app.addresses();
    const port = String(typeof address === 'object' ? address.port : options.port);
    const host = options.host.includes(':') ? `[${options.host}]` : options.host;
    const url = `http://${host}:${port}`;
    if (options.provisioner !== undefined) {
      const provisioner = options.provisioner(url);
      asking = new Asking({ scaler: engine.scaler, provisioner, log });
      asking.start();
    }
    sender?.start();
    return {
      url,
      engine,
      readiness: () => health.readiness(),
      close: async ({ drainMs = 0 } = {}) => {
        drain.begin();
        // While it still answers: what was started reports its results before it leaves.
        const draining = drainMs > 0 ? [engine.handOver(), delay(drainMs)] : [];
        await Promise.all([asking?.stop(), ...draining]);
        await sender?.stop();
        await app.close();
        await engine.close();
      },
    };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

function alertOptions({
  alertIntervalMs: intervalMs = defaultAlertIntervalMs,
  alertWebhook,
}: ServeOptions): Pick<OpenEngineOptions, 'alerts'> {
  return intervalMs === 0 ? {} : { alerts: { intervalMs, tells: alertWebhook !== undefined } };
}

function openSender(engine: Engine, options: ServeOptions): WebhookSender | null {
  const { alertWebhook: target, log = silentLog } = options;
  if (target === undefined) return null;
  return new WebhookSender({ outbox: engine.outbox, name: alertTarget, target, log });
}

function refuseToBeReached(host: string): void {
  if (isLoopback(host)) return;
  throw new NoKeysError(
    `Without API keys the server listens on this machine only (127.0.0.1), not on ${host}: ` +
      'anybody who reached it could submit and read tasks.',
  );
}

/** Health checks are open to strangers: which Redis it is, and what it said, is in the log. */
const readyQueueAway = 'Redis does not answer, or refuses to. The log of the server says why.';

/** Null: work is handed out. Without Redis the sentence is our own and names nobody. */
function degradationOf(engine: Engine): string | null {
  const trouble = engine.readyQueueTrouble();
  if (trouble === null) return null;
  return engine.leadership === null ? readyQueueAway : `${trouble}; another one takes over soon.`;
}

function healthOf(engine: Engine, asking: () => Asking | null): ServerHealth {
  return {
    degradation: () => degradationOf(engine),
    notes: () => {
      const isFailing = (asking()?.failure ?? null) !== null;
      return isFailing ? ['Asking for workers fails; GET /api/v1/scaling says why.'] : [];
    },
    replica: () => replicaStatus(engine),
    async readiness() {
      // Between two leaders every call is answered nevertheless, and a load balancer should send them.
      const isAway = engine.leadership === null && engine.readyQueueTrouble() !== null;
      const trouble = engine.databaseTrouble() ?? (isAway ? readyQueueAway : null);
      if (trouble !== null) return { ready: false, reason: trouble };
      const reason = engine.notServing();
      return reason === null ? { ready: true } : { ready: false, reason };
    },
    async progress() {
      const stuck = await engine.stuckTask();
      if (stuck === null) return { progressing: true };
      const reason =
        `Task ${stuck.taskId} is ready, a worker has room, ` +
        'and nothing was claimed for more than a minute.';
      return { progressing: false, reason };
    },
  };
}
