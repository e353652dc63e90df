import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import type { ConfiguredQueue } from '../ready/ready-queue.js';
import { ensureQueues, findConfigured } from '../store/queues.js';
import type { EngineContext } from './context.js';

/** A change that committed late may be older than one already seen. */
const overlapMs = 30_000;
const maxRememberedNames = 100_000;

/**
 * The queues that were configured, as last read: Postgres holds the truth, the ready queue is told
 * of it. Any other queue has the defaults, and costs nothing here.
 */
export class QueueDirectory {
  readonly #context: EngineContext;
  readonly #configured = new Map<string, ConfiguredQueue>();
  /** Names that have a row. */
  readonly #names = new Set<string>();
  #readAtMs: number | null = null;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  all(): readonly ConfiguredQueue[] {
    return [...this.#configured.values()];
  }

  settingsOf(name: string): QueueSettings {
    return this.#configured.get(name)?.settings ?? defaultQueueSettings;
  }

  /** Answers with what changed since the last time. */
  async load(): Promise<readonly ConfiguredQueue[]> {
    const { db } = this.#context;
    const since = this.#readAtMs === null ? null : new Date(this.#readAtMs - overlapMs);
    const readAtMs = db.nowMs();
    const changed = (await findConfigured(db, since)).filter((queue) => this.#isNews(queue));
    for (const queue of changed) this.#configured.set(queue.name, queue);
    this.#readAtMs = readAtMs;
    return changed;
  }

  /** Reads what other processes changed and passes it on. */
  async refresh(): Promise<void> {
    const changed = await this.load();
    if (changed.length > 0) await this.#context.ready.configure(changed);
  }

  /** After the commit that changed it. */
  async changed(queue: ConfiguredQueue): Promise<void> {
    if (this.#isNews(queue)) this.#configured.set(queue.name, queue);
    await this.#context.ready.configure([queue]);
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

  #isNews({ name, version }: ConfiguredQueue): boolean {
    return version > (this.#configured.get(name)?.version ?? 0);
  }
}
