import { MemoryReadyQueue } from '../ready/memory-ready-queue.js';
import { systemClock, type Clock } from '../runtime/clock.js';
import { silentLog, type Logger } from '../runtime/log.js';
import type { Database } from '../store/database.js';
import { migrate } from '../store/migrate.js';
import type { EngineContext } from './context.js';
import { Engine, type Role } from './engine.js';
import { TaskEvents } from './events.js';
import { defaultEngineSettings, type EngineSettings } from './settings.js';

export type { Engine, Role } from './engine.js';

export type DatabaseOptions =
  /** Embedded Postgres; without a folder it lives in memory and ends with the process. */
  | { readonly kind: 'pglite'; readonly dataDir?: string; readonly restoreFrom?: Blob }
  | { readonly kind: 'postgres'; readonly url: string; readonly poolSize?: number };

export interface OpenEngineOptions {
  readonly database: DatabaseOptions;
  readonly role?: Role;
  /** False: refuse to open when another process serves, instead of standing by. */
  readonly waitForTurn?: boolean;
  readonly onStandby?: (message: string) => void;
  readonly log?: Logger;
  readonly settings?: Partial<EngineSettings>;
  /** For tests: every decision about time then goes by this clock. */
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** Another process serves this database, and this one was told not to wait. */
export class NotOurTurnError extends Error {
  override readonly name = 'NotOurTurnError';
}

export async function openEngine(options: OpenEngineOptions): Promise<Engine> {
  const log = options.log ?? silentLog;
  const db = await openDatabase(options.database, log);
  try {
    await migrate(db);
    const context = createContext(options, db, log);
    const standby: string[] = [];
    const engine = new Engine(context, options.role ?? 'serve', (message) => {
      standby.push(message);
      options.onStandby?.(message);
    });
    await engine.begin();
    if (standby.length > 0 && options.waitForTurn === false) {
      await engine.close();
      throw new NotOurTurnError(standby.join(' '));
    }
    return engine;
  } catch (error) {
    await db.close();
    throw error;
  }
}

function createContext(options: OpenEngineOptions, db: Database, log: Logger): EngineContext {
  return {
    db,
    ready: new MemoryReadyQueue({ clock: options.clock ?? systemClock }),
    events: new TaskEvents((error) => {
      log.error({ err: error }, 'a listener of task events threw');
    }),
    settings: { ...defaultEngineSettings, ...options.settings },
    log,
    random: options.random ?? Math.random,
    clock: options.clock ?? null,
  };
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
    onError: (error) => {
      log.warn({ err: error }, 'a connection to Postgres was lost');
    },
  });
}
