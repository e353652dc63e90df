import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import type { Configuration, ConfiguredLimit, ConfiguredQueue } from '../ready/ready-queue.js';
import { findLimitsChanged } from '../store/limits.js';
import { ensureQueues, findConfigured, type ConfiguredRow } from '../store/queues.js';
import { approximateNow, type EngineContext } from './context.js';

/** A change that committed late may be older than one already seen. */
const overlapMs = 30_000;
const maxRememberedNames = 100_000;

/**
 * The queues that were configured and the limits they share, as last read: Postgres holds the truth,
 * the ready queue is told of it. Any other queue has the defaults, and costs nothing here.
 */
export class QueueDirectory {
  readonly #context: EngineContext;
  readonly #queues = new Map<string, ConfiguredRow>();
  readonly #limits = new Map<string, ConfiguredLimit>();
  /** Names that have a row. */
  readonly #names = new Set<string>();
  #readAtMs: number | null = null;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** All of it, as the ready queue needs it. */
  configuration(): Configuration {
    return this.#toConfiguration([...this.#limits.values()], [...this.#queues.values()]);
  }

  settingsOf(name: string): QueueSettings {
    return this.#queues.get(name)?.settings ?? defaultQueueSettings;
  }

  hasLimits(): boolean {
    if (this.#limits.size > 0) return true;
    for (const { settings } of this.#queues.values()) if (settings.limits.length > 0) return true;
    return false;
  }

  /** Answers with what changed since the last time. */
  async load(): Promise<Configuration> {
    const { db } = this.#context;
    const since = this.#readAtMs === null ? null : new Date(this.#readAtMs - overlapMs);
    const readAtMs = db.nowMs();
    // Queues first: whatever limit they use was there before them.
    const queues = (await findConfigured(db, since)).filter((queue) => this.#noteQueue(queue));
    const limits = (await findLimitsChanged(db, since)).filter((limit) => this.#noteLimit(limit));
    this.#readAtMs = readAtMs;
    return this.#toConfiguration(limits, queues);
  }

  /** Reads what other processes changed and passes it on. */
  async refresh(): Promise<void> {
    const changed = await this.load();
    if (changed.queues.length + changed.limits.length === 0) return;
    await this.#context.ready.configure(changed);
  }

  /** After the commit that changed it. */
  async queueChanged(queue: ConfiguredRow): Promise<void> {
    this.#noteQueue(queue);
    // A limit that another process made a moment ago may not be known here yet.
    const isKnown = (name: string) => this.#limits.has(name);
    const uses = queue.settings.limits.flatMap((limit) => ('use' in limit ? [limit.use] : []));
    if (!uses.every(isKnown)) await this.refresh();
    await this.#context.ready.configure(this.#toConfiguration([], [queue]));
  }

  async limitChanged(limit: ConfiguredLimit): Promise<void> {
    this.#noteLimit(limit);
    await this.#context.ready.configure(this.#toConfiguration([limit], []));
  }

  limitDeleted(name: string): void {
    this.#limits.delete(name);
  }

  /**
   * Queues are created on first use, after the submit has committed and beside it: a row that every
   * submit wrote would be a lock that every submit waits for. The next use tries again.
   */
  ensureLater(names: Iterable<string>): void {
    this.ensure(names).catch((error: unknown) => {
      this.#context.log.warn({ err: error }, 'could not write down the names of new queues');
    });
  }

  async ensure(names: Iterable<string>): Promise<void> {
    const unknown = [...names].filter((name) => !this.#names.has(name));
    if (unknown.length === 0) return;
    await ensureQueues(this.#context.db, unknown);
    if (this.#names.size > maxRememberedNames) this.#names.clear();
    for (const name of unknown) this.#names.add(name);
  }

  #toConfiguration(
    limits: readonly ConfiguredLimit[],
    queues: readonly ConfiguredRow[],
  ): Configuration {
    const nowMs = approximateNow(this.#context).getTime();
    return { limits, queues: queues.map((queue) => withRemainingPause(queue, nowMs)) };
  }

  /** False: it was known already. */
  #noteQueue(queue: ConfiguredRow): boolean {
    return note(this.#queues, queue);
  }

  #noteLimit(limit: ConfiguredLimit): boolean {
    return note(this.#limits, limit);
  }
}

function note<T extends { readonly name: string; readonly version: number }>(
  known: Map<string, T>,
  item: T,
): boolean {
  if (item.version <= (known.get(item.name)?.version ?? 0)) return false;
  known.set(item.name, item);
  return true;
}

function withRemainingPause(queue: ConfiguredRow, nowMs: number): ConfiguredQueue {
  const { pausedUntil } = queue.settings;
  return {
    ...queue,
    pausedForMs: pausedUntil === null ? null : Math.max(0, pausedUntil.getTime() - nowMs),
  };
}
