import { expect, it } from 'vitest';

import type { TaskId } from '../../src/domain/ids.js';
import type { Held } from '../../src/protocol/workers-api.js';
import { cancelTasks } from '../../src/store/cancel-tasks.js';
import { changeTask } from '../../src/store/change-task.js';
import { claimTasks } from '../../src/store/claim-tasks.js';
import { LockedError, type Database } from '../../src/store/database.js';
import { endAttempts } from '../../src/store/end-attempts.js';
import { expireTasks } from '../../src/store/expire-tasks.js';
import { wakeDue } from '../../src/store/feed-line.js';
import { completeTasks } from '../../src/store/finish-tasks.js';
import { freeHeldWorkflows, letGoOfCancelled } from '../../src/store/hold-workflows.js';
import { replayTasks } from '../../src/store/replay-tasks.js';
import { submitTasks } from '../../src/store/submit-tasks.js';
import {
  backToPending,
  claimOf,
  completionOf,
  newKey,
  newTask,
  newWorkerId,
  toDeadLetter,
} from './lifecycle.js';
import { describeOnPostgres } from './support.js';

/** Later ones would let go whom an earlier fault left behind: a workflow is soon left alone. */
const membersEach = 4;
const submitters = 3;
const runners = 3;
const rounds = 400;

/** One of many, each on connections of its own, that submit, run, cancel and replay members. */
class Actor {
  readonly #db: Database;
  readonly #known: TaskId[];

  constructor(db: Database, known: TaskId[]) {
    this.#db = db;
    this.#known = known;
  }

  /** One by one, or a batch for several workflows in any order; some with a key, some again. */
  async submit(): Promise<void> {
    const count = Math.random() < 0.7 ? 1 : 1 + this.#below(6);
    const tasks = Array.from({ length: count }, () => {
      const key = Math.random() < 0.2 ? newKey(`k${this.#below(200)}`) : null;
      return newTask({
        workflowId: `w${Math.floor(this.#known.length / membersEach) + this.#below(2)}`,
        haltsWorkflow: Math.random() < 0.5,
        idempotency: key,
        // Some expire before they run: the others have no deadline.
        dispatchDeadlineSeconds: Math.random() < 0.05 ? 1 : null,
      });
    });
    const submitted = await patiently(() => submitTasks(this.#db, tasks, null));
    for (const { kind, taskId } of submitted) if (kind === 'created') this.#known.push(taskId);
  }

  /** What is in line is claimed and ends in one way or another, several at once. */
  async run(): Promise<void> {
    const fed = await patiently(() => wakeDue(this.#db, 6, null));
    const claims = fed.map(({ taskId }) => claimOf(taskId, { workerId: newWorkerId() }));
    const held = await claimTasks(this.#db, claims, 0, 30_000, null);
    await Promise.all(held.map((task) => this.#end(task)));
    // A cancelled one let go of its place, if it had kept it.
    const leases = held.map(({ lease }) => lease);
    await patiently(() => letGoOfCancelled(this.#db, leases, null));
  }

  async cancel(): Promise<void> {
    const taskIds = Array.from({ length: 1 + this.#below(3) }, () => this.#pick());
    await patiently(() => cancelTasks(this.#db, taskIds, null));
  }

  /** What halts its workflow, so that it goes on, and any of the others. */
  async replay(): Promise<void> {
    const halting = await this.#db.query<{ id: TaskId }>(
      `select id from sluice.tasks where status in ('dead_letter', 'failed') and halts_workflow`,
    );
    // Each once, as the engine asks: who halts now may be cancelled, and picked, a moment later.
    const taskIds = new Set([...halting.map(({ id }) => id), this.#pick()]);
    await patiently(() => replayTasks(this.#db, [...taskIds], {}, null));
  }

  async change(): Promise<void> {
    await patiently(() => changeTask(this.#db, this.#pick(), { runAt: new Date() }, null));
  }

  async sweep(): Promise<void> {
    const late = new Date(Date.now() + 3_600_000);
    await patiently(() => expireTasks(this.#db, 5, late));
    await patiently(() => freeHeldWorkflows(this.#db, 5, 0, null));
  }

  async #end(held: Held): Promise<void> {
    const fate = Math.random();
    await patiently(async () => {
      if (fate < 0.75) await completeTasks(this.#db, [completionOf(held)], null);
      else if (fate < 0.9) await endAttempts(this.#db, [toDeadLetter(held)], null);
      else await endAttempts(this.#db, [backToPending(held)], null);
    });
  }

  #pick(): TaskId {
    // Mostly of the latest: those are where the others are at work.
    const back = 1 + this.#below(Math.min(20, this.#known.length));
    return this.#known.at(-back) ?? newTask().taskId;
  }

  #below(bound: number): number {
    return Math.floor(Math.random() * bound);
  }
}

describeOnPostgres(
  'R-WO2: members submitted, ended, cancelled and replayed at once',
  (postgres) => {
    it('leave nobody blocked without a predecessor, and never two out, nor out of order', async () => {
      const { db } = postgres();
      await logOuts(db);
      const known: TaskId[] = [];
      const actor = async (): Promise<Actor> =>
        new Actor(await postgres().open({ poolSize: 3 }), known);
      let done = 0;
      const repeat = async (times: number, act: () => Promise<void>): Promise<void> => {
        for (let round = 0; round < times; round += 1) await act();
        done += 1;
      };
      const others = Array.from({ length: submitters }, async () => {
        const one = await actor();
        await repeat(rounds, () => one.submit());
      });
      const disturber = await actor();
      others.push(
        repeat(rounds, () => disturber.cancel()),
        repeat(rounds, () => disturber.replay()),
        repeat(rounds / 2, () => disturber.change()),
        repeat(rounds / 4, () => disturber.sweep()),
      );
      const all = others.length;
      const work = Array.from({ length: runners }, async () => {
        const one = await actor();
        while (done < all) await one.run();
      });
      await Promise.all([...others, ...work]);

      expect(await findStranded(db)).toEqual([]);
      expect(await findOvertaken(db)).toEqual([]);
      const [count] = await db.query<{ outs: number }>('select count(*) as outs from outs');
      expect(count?.outs).toBeGreaterThan(rounds);
    });

    /** Who was let go, and who of its workflow then stood in front of it. */
    async function logOuts(db: Database): Promise<void> {
      await db.run(`
      create table outs (task_id uuid, workflow_id text, in_front bigint, also_out bigint);
      create function note_out() returns trigger language plpgsql as $$
      begin
        insert into outs
        select new.id, new.workflow_id,
          count(*) filter (
            where seq < new.seq and (status not in ('dead_letter', 'failed') or halts_workflow)
          ),
          count(*) filter (
            where id <> new.id
              and (status in ('queued', 'assigned', 'executing') or waits_for = 'time')
          )
        from sluice.tasks where workflow_id = new.workflow_id;
        return null;
      end
      $$;
      create trigger note_out after update of waits_for on sluice.tasks for each row
        when (old.waits_for = 'workflow' and new.waits_for = 'time')
        execute function note_out();
    `);
    }

    async function findOvertaken(db: Database): Promise<unknown[]> {
      return db.query('select * from outs where in_front > 0 or also_out > 0');
    }

    /** First in line, waiting for a turn that nobody will give it. */
    async function findStranded(db: Database): Promise<unknown[]> {
      return db.query(
        `select head.* from sluice.workflows workflow, lateral (
         select id, workflow_id, seq, waits_for from sluice.tasks
         where workflow_id = workflow.id
           and (status not in ('dead_letter', 'failed') or halts_workflow)
         order by seq limit 1
       ) as head
       where head.waits_for = 'workflow' and workflow.held_task is null
         and not exists (
           select from sluice.tasks other where other.workflow_id = workflow.id
             and (other.status in ('queued', 'assigned', 'executing')
               or other.waits_for = 'time')
         )`,
      );
    }
  },
);

/** As the engine does: what is locked is tried again. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
    }
  }
}
