import { SluiceError } from '../domain/errors.js';
import type { Lease, TaskId } from '../domain/ids.js';
import type { TaskEvent } from '../protocol/events.js';
import type { Held } from '../protocol/workers-api.js';
import { Batcher } from '../runtime/batcher.js';
import { findAttempts } from '../store/find-attempts.js';
import { letGoOfCancelled } from '../store/hold-workflows.js';
import { recordProgress, startTasks, type StartedRow } from '../store/start-tasks.js';
import {
  asRefusal,
  instant,
  judgeDatabaseFailure,
  tellAll,
  type EngineContext,
} from './context.js';
import { released, type EndAttempts } from './end-attempts.js';
import type { Feeder } from './feeder.js';

const maxItems = 1_000;

type ProgressItem = Held & { readonly percent: number; readonly message: string | null };

/** What a worker does with a task it holds, short of ending it: start, progress, release. */
export class AttemptControl {
  readonly #context: EngineContext;
  readonly #endAttempts: EndAttempts;
  readonly #feeder: Feeder;
  readonly #starts: Batcher<Held, boolean>;
  readonly #progress: Batcher<ProgressItem, boolean>;

  constructor(context: EngineContext, endAttempts: EndAttempts, feeder: Feeder) {
    this.#context = context;
    this.#endAttempts = endAttempts;
    this.#feeder = feeder;
    this.#starts = fencedBatcher((held) => this.#start(held));
    this.#progress = fencedBatcher((items) => recordProgress(context.db, items));
  }

  async #start(held: readonly Held[]): Promise<readonly Lease[]> {
    const rows = await startTasks(this.#context.db, held, instant(this.#context));
    const first = rows.filter(({ isFirst }) => isFirst);
    tellAll(this.#context, first, toStartedEvent);
    return rows.map(({ lease }) => lease);
  }

  async start(held: Held): Promise<void> {
    await this.#fenced(held, this.#starts.add(held));
  }

  async progress(item: ProgressItem): Promise<void> {
    await this.#fenced(item, this.#progress.add(item));
  }

  /** Back to the queue at no cost. */
  async release(
    held: readonly Held[],
  ): Promise<{ readonly released: readonly TaskId[]; readonly lost: readonly TaskId[] }> {
    try {
      const attempts = await findAttempts(this.#context.db, held);
      const rows = await this.#endAttempts.end(
        attempts.map((attempt) => released(attempt, attempt.timeoutSeconds)),
      );
      const back = new Map(rows.map(({ lease, taskId }) => [lease, taskId]));
      const lost = held.filter(({ lease }) => !back.has(lease));
      await this.letGo(lost);
      return { released: [...back.values()], lost: lost.map(({ taskId }) => taskId) };
    } catch (error) {
      throw asRefusal(error);
    }
  }

  /** The worker no longer runs these cancelled tasks: their workflows may go on. */
  async letGo(lost: readonly Held[]): Promise<void> {
    if (lost.length === 0) return;
    const leases = lost.map(({ lease }) => lease);
    await letGoOfCancelled(this.#context.db, leases, instant(this.#context));
    this.#feeder.noteDue(0);
  }

  async #fenced({ taskId }: Held, write: Promise<boolean>): Promise<void> {
    const written = await write.catch((error: unknown) => {
      throw asRefusal(error);
    });
    if (written) return;
    const detail = `Task ${taskId} is no longer held with this lease; nothing was changed. Stop working on it.`;
    throw new SluiceError('lease_lost', detail);
  }
}

function toStartedEvent({ lease: _, isFirst: __, ...row }: StartedRow, at: Date): TaskEvent {
  return { ...row, from: 'assigned', to: 'executing', at };
}

function fencedBatcher<Item extends Held>(
  write: (items: readonly Item[]) => Promise<readonly Lease[]>,
): Batcher<Item, boolean> {
  return new Batcher({
    maxItems,
    judge: judgeDatabaseFailure,
    flush: async (items) => {
      const written = new Set(await write(items));
      return items.map(({ lease }) => written.has(lease));
    },
  });
}
