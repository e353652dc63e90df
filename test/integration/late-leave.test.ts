import { expect, it, onTestFinished } from 'vitest';

import type { Engine } from '../../src/engine/open-engine.js';
import { until } from '../support/until.js';
import { describeOnPostgres, drafts, freshQueue, submitAll, TestWorker } from './support.js';
import { untilStalled } from './stalls.js';

const stallSeconds = 9;

describeOnPostgres('a server that takes long to leave', (server) => {
  it('R-CH4: does not write over what was granted after its turn', async () => {
    const settings = { servingLeaseMs: 2_000, servingRenewMs: 200 };
    const leaving = await server().open({ settings });
    const next = await server().open({ settings });
    const queue = freshQueue();
    await leaving.putQueue(queue, {
      limits: [{ unit: 'requests', rate: 60, perSeconds: 60, burst: 5 }],
    });
    await submitAll(leaving, drafts(100, { taskType: 'noop', queue }));
    await takeAll(leaving, queue, 5);
    await until('a checkpoint', async () => (await savedTokens(queue)) < 1);
    await prepareStall();
    await takeAll(leaving, queue, 1);
    await untilStalled(server());
    await server().sql('delete from public.stalling');
    await takeAll(leaving, queue, 1);
    const left = leaving.close();
    await until('the next one to lead', () => next.leadership?.leads === true);
    await until('tokens', async () => (await tokensOf(next, queue)) > 3);
    await takeAll(next, queue, 3);
    await until('a checkpoint', async () => (await savedTokens(queue)) < 1);
    await left;
    const before = await tokensOf(next, queue);
    const beganMs = performance.now();
    await next.close();
    const last = await server().open({ settings });
    const after = await tokensOf(last, queue);
    const gained = (performance.now() - beganMs) / 1000;
    expect(after).toBeLessThanOrEqual(before + gained + 0.1);
  }, 60_000);

  async function takeAll(engine: Engine, queue: string, count: number): Promise<void> {
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await worker.completeAll(await worker.take(count));
  }

  async function tokensOf(engine: Engine, queue: string): Promise<number> {
    return (await engine.getQueue(queue)).live.tokens.requests ?? Number.NaN;
  }

  async function savedTokens(queue: string): Promise<number> {
    const [row] = await server().sql<{ tokens: number }>(
      `select tokens from sluice.bucket_levels where bucket like 'queue ${queue}%'`,
    );
    return row?.tokens ?? Number.NaN;
  }

  /** Checkpoints take long while the table has a row. Of the statement, so that no row is locked. */
  async function prepareStall(): Promise<void> {
    onTestFinished(async () => {
      await server().sql('drop trigger if exists stalls on sluice.bucket_levels');
    });
    await server().sql('create table public.stalling as select 1 as one');
    await server().sql(`
      create or replace function public.stall() returns trigger language plpgsql as $$
      begin
        if exists (select from public.stalling) then perform pg_sleep(${stallSeconds}); end if;
        return null;
      end $$`);
    await server().sql(`
      create trigger stalls before insert on sluice.bucket_levels for each statement
      execute function public.stall()`);
  }
});
