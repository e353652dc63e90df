import { expect, inject, it, onTestFinished, vi } from 'vitest';

import type { TaskDraft } from '../../src/protocol/tasks-api.js';
import { ScriptRunner } from '../../src/ready/redis/script-runner.js';
import { until } from '../support/until.js';
import { describeOnPostgres, drafts, freshQueue, submitAll, TestWorker } from './support.js';

describeOnPostgres('coalesced batches', (server) => {
  it('a row that Postgres refuses fails its own caller and nobody else', async () => {
    const engine = await server().open();
    const good = (index: number): TaskDraft => ({ taskType: 'good', parameters: { index } });
    // The wire would refuse them; the engine is called from TypeScript as well.
    const bad: TaskDraft[] = [
      { taskType: 'bad', userId: 'nul \u0000 is no text' },
      { taskType: 'bad', timeoutSeconds: 1e12 },
      { taskType: 'bad', priority: 'urgent' as 'high' },
    ];
    const calls = Array.from({ length: 300 }, (_, index) => {
      const culprit = index % 100 === 50 ? bad[Math.floor(index / 100)] : undefined;
      return engine.submit(culprit ?? good(index));
    });
    const outcomes = await Promise.allSettled(calls);
    const refused = outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []));
    expect(refused).toEqual([50, 150, 250]);

    const worker = await TestWorker.register(engine);
    const taken = await worker.take(297);
    expect(new Set(taken.map(({ taskType }) => taskType))).toEqual(new Set(['good']));
    await worker.completeAll(taken);
  });

  it('a bad report fails its own caller and nobody else', async () => {
    const engine = await server().open();
    await submitAll(engine, drafts(100, { taskType: 'noop' }));
    const worker = await TestWorker.register(engine);
    const tasks = await worker.take(100);
    const outcomes = await Promise.allSettled(
      tasks.map(({ taskId, lease }, index) =>
        worker.report({
          taskId,
          lease: index === 37 ? ('no uuid' as typeof lease) : lease,
          status: 'completed',
        }),
      ),
    );
    const refused = outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []));
    expect(refused).toEqual([37]);
  });

  it('R-LA3: what Redis is asked for a submit is asked once for all that come together', async () => {
    const engine = await server().open({ redisUrl: inject('redisUrl') });
    const queue = freshQueue();
    const limit = { unit: 'requests', rate: 60, perSeconds: 60, burst: null };
    await engine.putQueue(queue, { limits: [limit] });
    const run = vi.spyOn(ScriptRunner.prototype, 'run');
    onTestFinished(() => {
      run.mockRestore();
    });
    const receipts = await Promise.all(
      Array.from({ length: 100 }, () => engine.submit({ taskType: 'noop', queue })),
    );
    const scripts = run.mock.calls.map(([{ name }]) => name);
    // The first one may go ahead of the others.
    for (const name of ['offer', 'positions', 'live']) {
      expect(scripts.filter((other) => other === name).length).toBeLessThanOrEqual(4);
    }
    expect(receipts.map(({ queuePosition }) => queuePosition)).toEqual([...receipts.keys()]);
    await engine.cancelTasks({ queue });
  });

  it('a locked row delays only itself: claims, starts and reports go on around it', async () => {
    const engine = await server().open();
    const [lockedId] = await submitAll(engine, drafts(60, { taskType: 'noop' }));
    const worker = await TestWorker.register(engine);
    const holder = await server().connect();
    const lock = async (): Promise<void> => {
      await holder.query('begin');
      await holder.query('select from sluice.tasks where id = $1 for update', [lockedId]);
    };

    await lock();
    const free = await worker.take(59, { prefetch: true });
    expect(free.map(({ taskId }) => taskId)).not.toContain(lockedId);
    await holder.query('commit');
    const locked = await worker.takeOne({ prefetch: true });
    expect(locked.taskId).toBe(lockedId);

    await lock();
    const start = engine.start(worker.workerId, locked);
    await Promise.all(free.map((task) => engine.start(worker.workerId, task)));
    await holder.query('commit');
    await start;

    await lock();
    const report = worker.complete(locked, 'late');
    const answers = await Promise.all(free.map((task) => worker.complete(task)));
    expect(answers.every(({ accepted }) => accepted)).toBe(true);
    await holder.query('commit');
    expect(await report).toMatchObject({ accepted: true, status: 'completed' });
  });

  it('R-ST3: a write that waited for another one of the same row finds its lease still good', async () => {
    const engine = await server().open();
    await submitAll(engine, drafts(6, { taskType: 'noop' }));
    const worker = await TestWorker.register(engine);
    const tasks = await worker.take(6, { prefetch: true });
    const ids = tasks.map(({ taskId }) => taskId);
    const [starts, progresses, completes, fails, releases, deadLetters] = tasks;
    if (!starts || !progresses || !completes || !fails || !releases || !deadLetters) {
      throw new Error('6 tasks were taken');
    }

    // Not only locked but changed: each statement has to go on from the row's new version.
    const other = await server().connect();
    await other.query('begin');
    await other.query('update sluice.tasks set progress_percent = 1 where id = any($1)', [ids]);
    const waiting = await server().connect();
    const writes = Promise.all([
      engine.start(worker.workerId, starts),
      engine.progress(worker.workerId, progresses, { percent: 50 }),
      worker.complete(completes),
      worker.fail(fails),
      engine.release(worker.workerId, [releases]),
      worker.fail(deadLetters, { retriable: false }),
    ]);
    await until('a statement to wait for the lock', async () => {
      const { rows } = await waiting.query(
        "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
      );
      return rows.length >= 3;
    });
    await other.query('commit');

    const [, , completed, failed, released, dead] = await writes;
    expect(completed).toMatchObject({ accepted: true, status: 'completed' });
    expect(failed).toMatchObject({ accepted: true, status: 'pending' });
    expect(released).toEqual({ released: [releases.taskId], lost: [] });
    expect(dead).toMatchObject({ accepted: true, status: 'dead_letter' });
    expect((await engine.getTask(starts.taskId)).status).toBe('executing');
    expect((await engine.getTask(progresses.taskId)).progress).toMatchObject({ percent: 50 });
  });

  it('R-WO11: progress and result of one task, sent at once, never cost the result', async () => {
    const engine = await server().open();
    const worker = await TestWorker.register(engine);
    for (let round = 0; round < 20; round++) {
      await submitAll(engine, drafts(50, { taskType: 'noop' }));
      const tasks = await worker.take(50);
      const answers = await Promise.all(
        tasks.map(async (task) => {
          // It may come second, and be refused.
          const progress = engine
            .progress(worker.workerId, task, { percent: 99 })
            .catch(() => undefined);
          const answer = await worker.complete(task);
          await progress;
          return answer;
        }),
      );
      expect(answers.filter(({ accepted }) => !accepted)).toEqual([]);
    }
  });
});
