import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import type { ConfiguredQueue } from '../ready/ready-queue.js';
import { allQueues, ensureQueues } from '../store/queues.js';
import type { EngineContext } from './context.js';

/** The queues there are, as last read: Postgres holds the truth, the ready queue is told of it. */
export class QueueDirectory {
  readonly #context: EngineContext;
  readonly #queues = new Map<string, ConfiguredQueue>();

  constructor(context: EngineContext) {
    this.#context = context;
  }

  all(): readonly ConfiguredQueue[] {
    return [...this.#queues.values()];
  }

  settingsOf(name: string): QueueSettings {
    return this.#queues.get(name)?.settings ?? defaultQueueSettings;
  }

  async load(): Promise<readonly ConfiguredQueue[]> {
    const queues = await allQueues(this.#context.db);
    const changed = queues.filter(
      ({ name, version }) => version > (this.#queues.get(name)?.version ?? 0),
    );
    for (const queue of changed) this.#queues.set(queue.name, queue);
    return changed;
  }

  /** Reads what other processes changed and passes it on. */
  async refresh(): Promise<void> {
    const changed = await this.load();
    if (changed.length > 0) await this.#context.ready.configure(changed);
  }

  /** After the commit that changed it. */
  async changed(queue: ConfiguredQueue): Promise<void> {
    const known = this.#queues.get(queue.name);
    if (known === undefined || known.version < queue.version) this.#queues.set(queue.name, queue);
    await this.#context.ready.configure([queue]);
  }

  /**
   * Queues are created on first use, after the submit has committed and off its path: a row that
   * every submit touched would be a lock that every submit waits for.
   */
  async ensure(names: Iterable<string>): Promise<void> {
    const unknown = [...new Set(names)].filter((name) => !this.#queues.has(name));
    if (unknown.length === 0) return;
    await ensureQueues(this.#context.db, unknown);
    for (const name of unknown) {
      if (!this.#queues.has(name)) {
        this.#queues.set(name, { name, version: 0, settings: defaultQueueSettings });
      }
    }
  }
}
