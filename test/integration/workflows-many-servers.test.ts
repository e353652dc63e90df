import { expect, inject, it } from 'vitest';

import { SluiceError } from '../../src/domain/errors.js';
import type { Engine } from '../../src/engine/open-engine.js';
import type { ClaimedTask } from '../../src/protocol/workers-api.js';
import { until } from '../support/until.js';
import { describeOnPostgres, indexOf, submitAll, TestWorker } from './support.js';

const workflows = 6;
const members = 8;
const all = workflows * members;
const queue = 'steps';

interface Progress {
  completed: number;
  isPaused: boolean;
}

interface AttemptRow {
  readonly workflow_id: string;
  readonly index: number;
  readonly outcome: string;
  readonly claimed_at: Date;
  readonly ended_at: Date;
}

describeOnPostgres('R-WO2: workflows over two servers', (server) => {
  const open = (): Promise<Engine> =>
    server().open({
      redisUrl: inject('redisUrl'),
      random: () => 0,
      settings: { leaseMs: 2_500, heartbeatIntervalMs: 200 },
    });

  it('keep their order through retries, lapsed leases, lost answers and a server that goes', async () => {
    const engines = await Promise.all([open(), open()]);
    await submitAll(
      engines[0],
      Array.from({ length: all }, (_, n) => ({
        taskType: 'step',
        queue,
        workflowId: `w${n % workflows}`,
        parameters: { index: Math.floor(n / workflows) },
      })),
    );
    const vanished = [await vanishWithOne(engines[1])];
    const progress: Progress = { completed: 0, isPaused: false };
    const workers = [0, 1, 0, 1].map((at) =>
      work(() => engines[at % engines.length] ?? engines[0], progress),
    );
    await until('half of them to be done', () => progress.completed >= all / 2);
    // It would get nothing beside workers that are quick enough.
    progress.isPaused = true;
    vanished.push(await vanishWithOne(engines[1]));
    progress.isPaused = false;
    const [going] = engines;
    engines[0] = await open();
    await going.close();
    await Promise.all(workers);

    // Who vanished comes back too late: its result is not taken.
    for (const { worker, task } of vanished) {
      const late = await worker.complete(task);
      expect(late).toMatchObject({ accepted: false, reason: 'lease_lost' });
    }
    const attempts = await listAttempts();
    expect(new Set(attempts.map(({ outcome }) => outcome))).toEqual(
      new Set(['succeeded', 'failed', 'lapsed', 'released']),
    );
    expect(attempts.filter(({ outcome }) => outcome === 'succeeded')).toHaveLength(all);
    expect(overlaps(attempts)).toEqual([]);
  });

  /** A worker that takes one and is never heard of again. */
  async function vanishWithOne(engine: Engine): Promise<{ worker: TestWorker; task: ClaimedTask }> {
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const stop = worker.keepBeating(100);
    const task = await worker.takeOne();
    stop();
    return { worker, task };
  }

  /** Fails some at first, forgets others, and completes the rest. */
  async function work(at: () => Engine, progress: Progress): Promise<void> {
    const held = new Set<ClaimedTask>();
    let { workerId } = await TestWorker.register(at(), { queues: [queue] });
    const beating = setInterval(() => {
      new TestWorker(at(), workerId).beat([...held]).catch(() => undefined);
    }, 100);
    /** At whichever server is there; a busy machine may have kept it silent for too long. */
    const call = async <T>(act: (worker: TestWorker) => Promise<T>): Promise<T> => {
      for (;;) {
        const engine = at();
        try {
          return await act(new TestWorker(engine, workerId));
        } catch (error) {
          const isUnknown = error instanceof SluiceError && error.code === 'worker_unknown';
          if (isUnknown) ({ workerId } = await TestWorker.register(at(), { queues: [queue] }));
          else if (engine === at()) throw error;
        }
      }
    };
    while (progress.completed < all) {
      await until('work to go on', () => !progress.isPaused);
      const tasks = await call((worker) => worker.look(3, { waitMs: 100 }));
      for (const task of tasks) {
        if (task.attempt === 1 && indexOf(task) === 4) continue;
        held.add(task);
        const isFailing = task.attempt === 1 && indexOf(task) === 2;
        const answer = await call((worker) =>
          isFailing ? worker.fail(task) : worker.complete(task),
        );
        held.delete(task);
        if (answer.accepted && answer.status === 'completed') progress.completed += 1;
      }
    }
    clearInterval(beating);
  }

  /** All attempts, those that went wrong and those that did not, as Postgres has kept them. */
  function listAttempts(): Promise<AttemptRow[]> {
    return server().sql<AttemptRow>(
      `select h.workflow_id, (i.parameters ->> 'index')::int as index, one.*
       from sluice.task_history h join sluice.task_inputs i on i.task_id = h.id, lateral (
         select 'succeeded' as outcome, h.assigned_at as claimed_at, h.ended_at
         union all
         select past ->> 'outcome', (past ->> 'assigned_at')::timestamptz,
           (past ->> 'ended_at')::timestamptz
         from unnest(h.past_attempts) as past where past ->> 'assigned_at' is not null
       ) as one
       where h.queue = '${queue}' and h.status = 'completed'
       order by h.workflow_id, one.claimed_at`,
    );
  }

  /** Neighbours in the order of their claims: never back to an earlier member, never two at once. */
  function overlaps(attempts: readonly AttemptRow[]): unknown[] {
    return attempts.flatMap((next, n) => {
      const before = attempts[n - 1];
      if (before?.workflow_id !== next.workflow_id) return [];
      const isInOrder = before.index <= next.index && before.ended_at <= next.claimed_at;
      return isInOrder ? [] : [[before, next]];
    });
  }
});
