import fc from 'fast-check';
import { expect, it } from 'vitest';

import { canMove, type TaskState } from '../../src/domain/task-state.js';
import type { Held } from '../../src/protocol/workers-api.js';
import { claimTasks } from '../../src/store/claim-tasks.js';
import type { Database } from '../../src/store/database.js';
import { endAttempts } from '../../src/store/end-attempts.js';
import { readLines, wakeDue } from '../../src/store/feed-line.js';
import { completeTasks } from '../../src/store/finish-tasks.js';
import { recordProgress, startTasks } from '../../src/store/start-tasks.js';
import { submitTasks } from '../../src/store/submit-tasks.js';
import { findWindows } from '../../src/store/walk-line.js';
import {
  backToPending,
  claimOf,
  completionOf,
  newKey,
  newTask,
  toDeadLetter,
} from './lifecycle.js';
import { describeOnEveryDatabase } from './support.js';

/** What happens next, and to which of those that it could happen to. */
const step = fc.record({
  what: fc.constantFrom(
    ...([
      'submit',
      'submit',
      'feed',
      'feed',
      'wake',
      'claim',
      'claim',
      'start',
      'progress',
    ] as const),
    ...(['complete', 'retry', 'release', 'defer', 'give up'] as const),
  ),
  batch: fc.integer({ min: 1, max: 6 }),
  pick: fc.nat(1_000),
  flag: fc.boolean(),
  small: fc.integer({ min: 0, max: 3 }),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

describeOnEveryDatabase('R-ST1: whatever happens', (db) => {
  it('every row satisfies the schema, every move is in the table, nothing is lost', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
        await db().run(
          `truncate sluice.tasks, sluice.task_inputs, sluice.task_history,
             sluice.idempotency_keys, sluice.workflows;`,
        );
        const life = new Life(db());
        for (const next of steps) {
          await life.live(next);
          await life.check();
        }
      }),
      { numRuns: 15 },
    );
  });
});

/** Remembers every lease ever given, so that stale ones are used as well. */
class Life {
  readonly #db: Database;
  readonly #leases: Held[] = [];
  #states = new Map<string, TaskState>();
  #submitted = 0;
  #nowMs = Date.now();

  constructor(db: Database) {
    this.#db = db;
  }

  async live(step: Step): Promise<void> {
    this.#nowMs += step.pick;
    const now = new Date(this.#nowMs);
    const some = this.#leases.slice(-1 - (step.pick % 12)).slice(0, step.batch);
    switch (step.what) {
      case 'submit': {
        const answers = await submitTasks(this.#db, this.#drafts(step), now);
        this.#submitted += answers.filter((answer) => answer.kind === 'created').length;
        return;
      }
      case 'feed': {
        const from = { eligibleAtMs: Number.NEGATIVE_INFINITY, seq: 0 };
        const windows = await findWindows(this.#db, 10, null);
        const wanted = windows.map((window) => ({ window, from, limit: step.batch }));
        await readLines(this.#db, wanted, now);
        return;
      }
      case 'wake':
        await wakeDue(this.#db, step.batch, now);
        return;
      case 'claim': {
        const ids = [...this.#states.keys()] as Held['taskId'][];
        const from = step.pick % Math.max(1, ids.length);
        const claims = ids.slice(from, from + 10).map((id) => claimOf(id, { start: step.flag }));
        this.#leases.push(...(await claimTasks(this.#db, claims, 0, 30_000, now)));
        return;
      }
      case 'start':
        await startTasks(this.#db, some, now);
        return;
      case 'progress':
        await recordProgress(
          this.#db,
          some.map((held) => ({ ...held, percent: step.pick % 101, message: null })),
        );
        return;
      case 'complete':
        await completeTasks(
          this.#db,
          some.map((held) => completionOf(held, { resultJson: '{}' })),
          now,
        );
        return;
      case 'retry':
        await this.#end(
          some.map((held) => backToPending(held, { delayMs: step.small * 500 })),
          now,
        );
        return;
      case 'release':
        await this.#end(
          some.map((held) => backToPending(held, { costsRetry: false, countsAs: 'return' })),
          now,
        );
        return;
      case 'defer':
        await this.#end(
          some.map((held) => backToPending(held, { delayMs: 10, countsAs: 'deferral' })),
          now,
        );
        return;
      case 'give up':
        await this.#end(some.map(toDeadLetter), now);
        return;
    }
  }

  async #end(ends: Parameters<typeof endAttempts>[1], now: Date): Promise<void> {
    await endAttempts(this.#db, ends, now);
  }

  #drafts({ batch, pick, flag, small }: Step): Parameters<typeof submitTasks>[1] {
    return Array.from({ length: batch }, (_, n) =>
      newTask({
        queue: `q${(pick + n) % 3}`,
        isOffered: flag,
        priority: (['high', 'medium', 'low'] as const)[(pick + n) % 3] ?? 'low',
        workflowId: (pick + n) % 4 === 0 ? `w${small}` : null,
        haltsWorkflow: flag,
        delaySeconds: (pick + n) % 5 === 0 ? small : null,
        dispatchDeadlineSeconds: (pick + n) % 6 === 0 ? 60 : null,
        idempotency: (pick + n) % 7 === 0 ? newKey(`k${small}`) : null,
      }),
    );
  }

  /** Each task is in exactly one place, got there by a move that exists, and keeps its input. */
  async check(): Promise<void> {
    const rows = await this.#db.query<{ id: string; status: TaskState; has_input: boolean }>(
      `select id, status, exists (select from sluice.task_inputs where task_id = id) as has_input
       from (
         select id, status from sluice.tasks
         union all
         select id, status from sluice.task_history
       ) as everywhere`,
    );
    const states = new Map(rows.map((row) => [row.id, row.status]));
    expect(states.size).toBe(rows.length);
    expect(rows.length).toBe(this.#submitted);
    expect(rows.filter((row) => !row.has_input)).toEqual([]);
    for (const [id, state] of states) {
      const before = this.#states.get(id) ?? 'new';
      expect(before === state || canMove(before, state), `${before} to ${state}`).toBe(true);
    }
    this.#states = states;
    const stuck = await this.#db.query(
      `select workflow_id from sluice.tasks member
       where waits_for = 'workflow' and not exists (
         select from sluice.tasks other
         where other.workflow_id = member.workflow_id and other.seq < member.seq
           and (other.status not in ('dead_letter', 'failed') or other.halts_workflow)
       )`,
    );
    expect(stuck).toEqual([]);
  }
}
