import { purgeAudit } from '../store/audit.js';
import { LockedError } from '../store/database.js';
import { compactInputs, dropHistory, dropInputs } from '../store/partitions.js';
import {
  findPurgeable,
  giveUpWorkflow,
  purgeEnded,
  type GivenUp,
  type HaltingRow,
  type KeptDays,
} from '../store/purge-ended.js';
import { purgeWorkflows } from '../store/purge-workflows.js';
import { purgeQueues } from '../store/queues.js';
import { noteTypesOfLiving, purgeTaskTypes } from '../store/task-types.js';
import { instant, tell, type EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import type { Lanes } from './lanes.js';

const maxDaysAtOnce = 10;
const maxEndedAtOnce = 5_000;
const maxCancelledAtOnce = 1_000;
const maxWorkflowsAtOnce = 5_000;
const maxQueuesAtOnce = 1_000;
const maxAuditAtOnce = 5_000;
const unseenTypesKeptMs = 30 * 24 * 3_600_000;
/** It may read all living tasks, and the types of all living workers. */
const purgeNamesMs = 3_600_000;

/**
 * Lets go of what ended long ago: whole days of history, dead letters one by one. Every step is bounded,
 * idempotent and gives way to whoever is at a row or a table; the next round goes on. On a loop of its own:
 * copying a day or reading all tasks takes seconds, in which the sweeper must find dead workers.
 */
export class Retention {
  readonly #context: EngineContext;
  readonly #feeder: Feeder;
  readonly #lanes: Lanes;
  readonly #kept: KeptDays;
  #workflowCursor: string | null = null;
  #dayCursor: string | null = null;
  #nextNamesMs = 0;

  constructor(context: EngineContext, feeder: Feeder, lanes: Lanes) {
    this.#context = context;
    this.#feeder = feeder;
    this.#lanes = lanes;
    const { retainEndedDays, retainDeadLettersDays } = context.settings;
    this.#kept = { failed: retainEndedDays, deadLetter: retainDeadLettersDays };
  }

  async tick(): Promise<number> {
    await this.#unlessLocked(() => this.#purgeEnded());
    await this.#unlessLocked(() => this.#dropDays());
    await this.#unlessLocked(() => this.#compactDays());
    await this.#unlessLocked(() => this.#purgeWorkflows());
    await this.#unlessLocked(() => this.#lanes.purge());
    await this.#unlessLocked(() => this.#purgeNames());
    await this.#unlessLocked(() => this.#purgeAudit());
    return this.#context.settings.retentionIntervalMs;
  }

  async #unlessLocked(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      this.#context.log.debug({ err: error }, 'what is to be purged is locked; later then');
    }
  }

  async #purgeEnded(): Promise<void> {
    const { db } = this.#context;
    const now = instant(this.#context);
    const { ordinary, halting } = await findPurgeable(db, this.#kept, maxEndedAtOnce, now);
    let purged = await purgeEnded(db, ordinary, this.#kept, now);
    let cancelled = 0;
    for (const row of halting) {
      if (cancelled >= maxEndedAtOnce) break;
      await this.#unlessLocked(async () => {
        const given = await this.#giveUp(row);
        purged += given.purged;
        cancelled += given.cancelled.length;
      });
    }
    if (purged > 0) this.#context.log.info({ purged, cancelled }, 'purged dead letters');
  }

  async #giveUp(row: HaltingRow): Promise<GivenUp> {
    const { db } = this.#context;
    const now = instant(this.#context);
    const given = await giveUpWorkflow(db, row, this.#kept, maxCancelledAtOnce, now);
    for (const row of given.cancelled) {
      const { taskId, queue, taskType, priority, from, attempt, trace } = row;
      const move = { from, to: 'cancelled', attempt, trace, reason: given.why } as const;
      tell(this.#context, { taskId, queue, taskType, priority, ...move });
    }
    if (given.purged > 0) this.#feeder.noteDue(0);
    return given;
  }

  /** History first: what is left of it decides which inputs are still needed. */
  async #dropDays(): Promise<void> {
    const { db, log, settings } = this.#context;
    const now = instant(this.#context);
    const history = await dropHistory(db, settings.retainEndedDays, maxDaysAtOnce, now);
    const inputs = await dropInputs(db, maxDaysAtOnce, now);
    const dropped = [...history, ...inputs];
    if (dropped.length > 0) log.info({ dropped }, 'dropped days that ended long ago');
  }

  async #compactDays(): Promise<void> {
    const { db, log, settings } = this.#context;
    const { compacted, next } = await compactInputs(
      db,
      settings.retainEndedDays,
      this.#dayCursor,
      maxDaysAtOnce,
      instant(this.#context),
    );
    this.#dayCursor = next;
    if (compacted.length > 0) log.info({ compacted }, 'dropped the inputs of purged tasks');
  }

  /** Of queues and task types that nobody uses any more. */
  async #purgeNames(): Promise<void> {
    if (performance.now() < this.#nextNamesMs) return;
    const { db, log, settings } = this.#context;
    this.#nextNamesMs = performance.now() + purgeNamesMs;
    const unusedMs = settings.retainEndedDays * 24 * 3_600_000;
    const purged = await purgeQueues(db, unusedMs, maxQueuesAtOnce, instant(this.#context));
    if (purged > 0) log.info({ purged }, 'deleted queues without settings, tasks and submits');
    await noteTypesOfLiving(db, instant(this.#context));
    const types = await purgeTaskTypes(db, unseenTypesKeptMs, instant(this.#context));
    if (types.length > 0) log.info({ types }, 'deleted task types that no worker had for 30 days');
  }

  async #purgeAudit(): Promise<void> {
    const { db, settings } = this.#context;
    await purgeAudit(db, settings.auditDays, maxAuditAtOnce, instant(this.#context));
  }

  async #purgeWorkflows(): Promise<void> {
    const { db } = this.#context;
    const { next } = await purgeWorkflows(db, this.#workflowCursor, maxWorkflowsAtOnce);
    this.#workflowCursor = next;
  }
}
