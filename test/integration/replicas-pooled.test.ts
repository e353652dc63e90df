import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';

import { openEngine } from '../../src/engine/open-engine.js';
import { startPgBouncer } from '../support/services/pgbouncer.js';
import { until } from '../support/until.js';
import { describeOnPostgres, drafts, quickTicks, submitAll, TestWorker } from './support.js';

describeOnPostgres('replicas behind PgBouncer in transaction mode', (server) => {
  it('R-CH12: mail is polled for, which is logged once, and every process serves', async () => {
    const bouncer = await startPgBouncer(server().url, { poolMode: 'transaction', poolSize: 10 });
    const lines: string[] = [];
    const log = pino({ level: 'info' }, { write: (line) => lines.push(line) });
    const open = () =>
      openEngine({
        database: { kind: 'postgres', url: bouncer.url },
        log,
        settings: { ...quickTicks, leaseMs: 600_000 },
      });
    const leader = await open();
    const follower = await open();
    onTestFinished(async () => {
      await follower.close();
      await leader.close();
      await bouncer.stop();
      await server().sql('delete from sluice.serving');
    });
    expect(follower.mailFlow?.delivery).toBe('poll');
    expect(lines.filter((line) => line.includes('polled for'))).toHaveLength(2);

    await until('the follower to reach the leader', () => follower.readyQueueTrouble() === null);
    const worker = await TestWorker.register(follower, { queues: ['pooled'] });
    const taskIds = await submitAll(follower, drafts(200, { taskType: 'noop', queue: 'pooled' }));
    const tasks = await worker.take(200);
    expect(tasks.map(({ taskId }) => taskId)).toEqual(taskIds);
    await worker.completeAll(tasks);
    expect(follower.mailFlow?.calls.lost).toBe(0);
  });

  it('R-CH12: one behind the pooler and one that reaches Postgres itself work together', async () => {
    const bouncer = await startPgBouncer(server().url, { poolMode: 'transaction', poolSize: 10 });
    const direct = await server().open();
    const pooled = await openEngine({
      database: { kind: 'postgres', url: bouncer.url },
      settings: { ...quickTicks, leaseMs: 600_000 },
    });
    onTestFinished(async () => {
      await pooled.close();
      await bouncer.stop();
    });
    expect([direct.mailFlow?.delivery, pooled.mailFlow?.delivery]).toEqual(['listen', 'poll']);
    const worker = await TestWorker.register(pooled, { queues: ['mixed'] });
    const looking = worker.look(1, { waitMs: 30_000 });
    const { taskId } = await direct.submit({ taskType: 'noop', queue: 'mixed' });
    expect((await looking).map((task) => task.taskId)).toEqual([taskId]);
  });
});
