import { NoPartitionError } from '../store/database.js';
import { ensureNextPartitions, ensurePartitions } from '../store/partitions.js';
import { instant, type EngineContext } from './context.js';

const daysAhead = 7;
const retryMs = 10_000;

/**
 * Makes the partitions of the next days. In every process that writes, on a loop of its own: a process
 * that only submits has no server to rely on, and a repair that fails must not stop it.
 */
export class PartitionUpkeep {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** A partition that can't be made now fails no start: today's is likely there. */
  async tick(): Promise<number> {
    const { db, log, settings } = this.#context;
    try {
      const now = instant(this.#context);
      await (db.isExclusive ? ensureNextPartitions(db, now) : ensurePartitions(db, daysAhead, now));
      return settings.upkeepIntervalMs;
    } catch (error) {
      if (!(error instanceof NoPartitionError)) throw error;
      log.error({ err: error }, 'partitions of the next days could not be made; trying again');
      return Math.min(retryMs, settings.upkeepIntervalMs);
    }
  }
}
