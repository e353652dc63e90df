import type { Taken } from '../ready/ready-queue.js';
import { haveChanged } from '../store/unsettled.js';
import type { EngineContext } from './context.js';
import type { LostEntries } from './lost-entries.js';
import type { QueueDirectory } from './queue-directory.js';

/**
 * Postgres refuses claims of a queue whose newest settings the ready queue lacked when it granted them. Their
 * tasks left the ready queue with that grant: it is told of the settings, and then gets them back.
 */
export class SettingsFence {
  readonly #context: EngineContext;
  readonly #queues: QueueDirectory;
  readonly #lostEntries: LostEntries;

  constructor(context: EngineContext, queues: QueueDirectory, lostEntries: LostEntries) {
    this.#context = context;
    this.#queues = queues;
    this.#lostEntries = lostEntries;
  }

  /** What fails here is repaired by the lap over the line, as every lost entry. */
  refusedSoon(entries: readonly Taken[]): void {
    this.#refused(entries).catch((error: unknown) => {
      this.#context.log.warn({ err: error }, 'could not offer refused tasks again');
    });
  }

  async #refused(entries: readonly Taken[]): Promise<void> {
    const queues = [...new Set(entries.map(({ lane }) => lane.queue))];
    if (!(await haveChanged(this.#context.db, queues))) return;
    this.#queues.doubt();
    if (!(await this.#queues.settleDoubt())) return;
    await this.#lostEntries.offerAgain(entries.map(({ taskId }) => taskId));
  }
}
