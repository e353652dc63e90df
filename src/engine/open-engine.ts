import { scalingSettings, type ScalingSettings } from '../domain/scaling.js';
import type { ReplicaReadyQueue } from '../ready/forwarded/replica-ready-queue.js';
import type { ReadyQueue } from '../ready/ready-queue.js';
import { MemoryReadyQueue } from '../ready/memory/memory-ready-queue.js';
import { AnswerBudget } from './answer-budget.js';
import { LocalBus, type Bus } from '../runtime/bus.js';
import { systemClock, type Clock } from '../runtime/clock.js';
import { defaultTransitionMode, type TransitionMode } from '../runtime/log-format.js';
import { silentLog, type Logger } from '../runtime/log.js';
import { TransitionLog } from '../runtime/transition-log.js';
import type { Database } from '../store/database.js';
import type { DataImage } from '../store/embedded/image-file.js';
import { translate } from '../store/failures.js';
import { findInstallationId } from '../store/installation.js';
import { migrate } from '../store/migrate.js';
import { clearServing } from '../store/serving.js';
import type { Patience } from '../store/silent-connections.js';
import { watchOutages } from '../store/watch-outages.js';
import type { AlertOptions } from './alert-options.js';
import type { EngineContext, EngineMode } from './context.js';
import { Engine } from './engine.js';
import { TaskEvents } from './events.js';
import { PayloadLog, type PayloadLogging } from './payload-log.js';
import type { Role } from './serving.js';
import { engineSettings, type EngineSettings } from './settings.js';

export type { Engine } from './engine.js';
export type { Role } from './serving.js';

export type DatabaseOptions =
  /** Embedded Postgres; without a folder it lives in memory and ends with the process. */
  | { readonly kind: 'pglite'; readonly dataDir?: string; readonly image?: DataImage }
  | PostgresOptions;

interface PostgresOptions {
  readonly kind: 'postgres';
  readonly url: string;
  readonly poolSize?: number;
  /** For tests: how long an answer may be missing. */
  readonly patience?: Partial<Patience>;
}

export interface OpenEngineOptions {
  readonly database: DatabaseOptions;
  /** Where several servers keep one ready queue; without it, it is in the memory of one. */
  readonly redisUrl?: string;
  readonly role?: Role;
  readonly log?: Logger;
  /** Which changes of a task's state are logged; default `problems`. */
  readonly logTransitions?: TransitionMode;
  /** Whether the lines of failed attempts hold what their handlers threw. Default: with `logPayloads`. */
  readonly logThrown?: boolean;
  /** Writes parameters, results and errors to the log. Absent: they never appear there. */
  readonly logPayloads?: PayloadLogging;
  /** Shared with what sends the answers. */
  readonly answers?: AnswerBudget;
  readonly settings?: Partial<EngineSettings>;
  readonly scaling?: Partial<ScalingSettings>;
  /** Absent: this process evaluates no alerts. */
  readonly alerts?: AlertOptions;
  /** For tests: every decision about time then goes by this clock. */
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** Servers of the other kind, with or without Redis, or with another Redis, serve this database. */
export class MixedServersError extends Error {
  override readonly name = 'MixedServersError';
}

export async function openEngine(options: OpenEngineOptions): Promise<Engine> {
  const log = options.log ?? silentLog;
  const settings = engineSettings(options.settings);
  const db = await openDatabase(options.database, log);
  try {
    await migrate(db);
    // Of a process that was killed: this one need not wait for its lease to lapse.
    if (db.isExclusive) await clearServing(db);
    const links = await openReadyQueue(options, db, log);
    try {
      return await openOn(options, createContext({ ...options, settings }, db, links, log));
    } catch (error) {
      await links.close();
      throw error;
    }
  } catch (error) {
    await db.close();
    throw error;
  }
}

async function openOn(options: OpenEngineOptions, context: EngineContext): Promise<Engine> {
  const engine = new Engine(context, options.role ?? 'serve');
  await engine.begin();
  const refusal = engine.mixture();
  if (refusal === null) return engine;
  await engine.close();
  throw new MixedServersError(refusal);
}

interface ReadyLinks {
  readonly ready: ReadyQueue;
  readonly bus: Bus;
  readonly replicas?: ReplicaReadyQueue;
  readonly place?: () => Promise<string | null>;
  close(): Promise<void>;
}

/** Lazily: who runs without Redis never loads its client. */
async function openReadyQueue(
  { database, redisUrl, clock }: OpenEngineOptions,
  db: Database,
  log: Logger,
): Promise<ReadyLinks> {
  if (redisUrl === undefined && database.kind === 'postgres') {
    return openReplica({ url: database.url, clock: clock ?? systemClock }, db, log);
  }
  if (redisUrl === undefined) {
    const ready = new MemoryReadyQueue({ clock: clock ?? systemClock });
    return { ready, bus: new LocalBus(), close: () => ready.close() };
  }
  // The hash tag keeps all keys of one database in one slot, and those of two databases apart.
  const prefix = `sluice:{${await findInstallationId(db)}}:`;
  const [{ openRedis }, { RedisBus }, { RedisReadyQueue }, { findPlace }] = await Promise.all([
    import('../ready/redis/connection.js'),
    import('../ready/redis/bus.js'),
    import('../ready/redis/redis-ready-queue.js'),
    import('../ready/redis/place.js'),
  ]);
  const connection = await openRedis(redisUrl, log, prefix);
  const bus = new RedisBus(connection, prefix, log);
  const ready = new RedisReadyQueue({
    connection,
    bus,
    prefix,
    log,
    ...(clock === undefined ? {} : { clock }),
  });
  return {
    ready,
    bus,
    place: () => findPlace(connection, prefix),
    close: async () => {
      await ready.close();
      await bus.close();
      await connection.close();
    },
  };
}

/** Lazily as well: an embedded database has one process and needs no mail. */
async function openReplica(
  { url, clock }: { readonly url: string; readonly clock: Clock },
  db: Database,
  log: Logger,
): Promise<ReadyLinks> {
  const [{ PgMailbox }, { ReplicaReadyQueue }] = await Promise.all([
    import('../store/pg-mailbox.js'),
    import('../ready/forwarded/replica-ready-queue.js'),
  ]);
  const mailbox = new PgMailbox({ db, url, log });
  await mailbox.open();
  const ready = new ReplicaReadyQueue({ mailbox, clock, log });
  return { ready, replicas: ready, bus: ready.bus, close: () => ready.close() };
}

function createContext(
  options: OpenEngineOptions & { readonly settings: EngineSettings },
  db: Database,
  links: ReadyLinks,
  log: Logger,
): EngineContext {
  const { watched, outage } = watchOutages(db);
  const events = new TaskEvents((error) => {
    log.error({ err: error }, 'a listener of task events threw');
  });
  return {
    db: watched,
    outage,
    ready: links.ready,
    bus: links.bus,
    closeLinks: () => links.close(),
    ...(links.place === undefined ? {} : { place: links.place }),
    mode: modeOf(options),
    ...(links.replicas === undefined ? {} : { replicas: links.replicas }),
    answers: options.answers ?? new AnswerBudget(),
    events,
    transitions: logTransitions(options, events, log),
    settings: options.settings,
    scaling: scalingSettings(options.scaling),
    ...(options.alerts === undefined ? {} : { alerts: options.alerts }),
    log,
    ...(options.logPayloads === undefined
      ? {}
      : { payloads: new PayloadLog(log, options.logPayloads) }),
    random: options.random ?? Math.random,
    clock: options.clock ?? null,
  };
}

function modeOf({ database, redisUrl }: OpenEngineOptions): EngineMode {
  if (redisUrl !== undefined) return 'redis';
  return database.kind === 'postgres' ? 'replicas' : 'memory';
}

function logTransitions(
  { logTransitions: mode, logThrown, logPayloads }: OpenEngineOptions,
  events: TaskEvents,
  log: Logger,
): TransitionLog {
  const transitions = new TransitionLog(log, {
    mode: mode ?? defaultTransitionMode,
    hidesThrown: !(logThrown ?? logPayloads !== undefined),
  });
  if (transitions.isOn) {
    events.subscribe((event) => {
      transitions.transition(event);
    });
  }
  return transitions;
}

/** Lazily: who runs on a Postgres server never loads the embedded one. */
export async function openDatabase(options: DatabaseOptions, log: Logger): Promise<Database> {
  if (options.kind === 'pglite') {
    const { openPgliteDatabase } = await import('../store/pglite-database.js');
    return openPgliteDatabase(options);
  }
  const { openPgDatabase } = await import('../store/pg-database.js');
  return openPgDatabase({
    url: options.url,
    ...(options.poolSize === undefined ? {} : { poolSize: options.poolSize }),
    ...(options.patience === undefined ? {} : { patience: options.patience }),
    onError: (error) => {
      log.warn({ err: translate(error) }, 'a connection to Postgres was lost');
    },
  });
}
