import { expect, inject, it } from 'vitest';

import type { Engine } from '../../src/engine/open-engine.js';
import { askRedis, startRedis } from '../support/services/redis-server.js';
import { until } from '../support/until.js';
import { describeOnPostgres, drafts, submitAll, TestWorker } from './support.js';

const aDay = 86_400;

async function tokensOf(engine: Engine, queue: string): Promise<number> {
  const { live } = await engine.getQueue(queue);
  return live.tokens.requests ?? Number.NaN;
}

describeOnPostgres('checkpoints', (server) => {
  const fiveADay = { unit: 'requests', rate: 5, perSeconds: aDay, burst: null };

  async function takeFirst(engine: Engine, queue: string): Promise<void> {
    await submitAll(engine, drafts(3, { taskType: 'noop', queue }));
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const taken = await worker.look(3);
    expect(taken).toHaveLength(1);
    await worker.completeAll(taken);
  }

  it('R-CH4: a restart gives a spent limit nothing back', async () => {
    const first = await server().open();
    await first.putQueue('spent', { limits: [fiveADay] });
    await takeFirst(first, 'spent');
    await first.close();
    const second = await server().open();
    expect(await tokensOf(second, 'spent')).toBeLessThan(0.1);
    const worker = await TestWorker.register(second, { queues: ['spent'] });
    expect(await worker.look(3)).toHaveLength(0);
  });

  it('R-CH4: a clean restart takes nothing from a limit that was not spent', async () => {
    const first = await server().open();
    await first.putQueue('unspent', { limits: [{ ...fiveADay, burst: 4 }] });
    await takeSome(first, 'unspent', 1);
    await first.close();
    const second = await server().open();
    expect(await tokensOf(second, 'unspent')).toBeCloseTo(3, 1);
    const worker = await TestWorker.register(second, { queues: ['unspent'] });
    expect(await worker.look(5)).toHaveLength(3);
  });

  it('R-CH4: after a crash all that could have been granted counts as granted', async () => {
    const first = await server().open();
    await first.putQueue('crashed', { limits: [{ ...fiveADay, burst: 4 }] });
    await takeSome(first, 'crashed', 1);
    await until('a checkpoint', async () => {
      const rows = await server().sql(
        `select from sluice.bucket_levels where bucket like '%crashed%' and tokens < 4`,
      );
      return rows.length === 1;
    });
    // As if it had been killed: what a clean end would have written is not there.
    await first.close();
    await server().sql('update sluice.bucket_levels set is_final = false');
    const second = await server().open();
    expect(await tokensOf(second, 'crashed')).toBeLessThan(1);
    const worker = await TestWorker.register(second, { queues: ['crashed'] });
    expect(await worker.look(5)).toHaveLength(0);
  });

  it('R-CH5: a dear task that still runs is remembered, whatever was written down', async () => {
    const first = await server().open();
    const tokens = { unit: 'tokens', rate: 30_000, perSeconds: 3_600, burst: null };
    await first.putQueue('dear', { limits: [tokens] });
    const cost = { tokens: 20_000 };
    await submitAll(first, drafts(2, { taskType: 'noop', queue: 'dear', cost }));
    const worker = await TestWorker.register(first, { queues: ['dear'] });
    expect(await worker.look(2)).toHaveLength(1);
    // As if it had been killed at once.
    await first.close();
    await server().sql('delete from sluice.bucket_levels');
    const second = await server().open();
    const { live } = await second.getQueue('dear');
    expect(live.tokens.tokens).toBeLessThan(-10_000);
  });

  async function takeSome(engine: Engine, queue: string, count: number): Promise<void> {
    await submitAll(engine, drafts(10, { taskType: 'noop', queue }));
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const taken = await worker.look(count);
    expect(taken).toHaveLength(count);
    await worker.completeAll(taken);
  }
});

describeOnPostgres('checkpoints and Redis', (server) => {
  it('R-CH4: a flush gives a spent limit nothing back', async () => {
    const redis = await startRedis();
    const engine = await server().open({ redisUrl: redis.url });
    const limits = [{ unit: 'requests', rate: 5, perSeconds: aDay, burst: null }];
    await engine.putQueue('spent', { limits });
    await submitAll(engine, drafts(3, { taskType: 'noop', queue: 'spent' }));
    const worker = await TestWorker.register(engine, { queues: ['spent'] });
    await worker.completeAll(await worker.take(1));
    await until('a checkpoint', async () => {
      const rows = await server().sql('select from sluice.bucket_levels where tokens < 1');
      return rows.length === 1;
    });
    await askRedis(redis.url, 'flushall');
    await until('the ready queue to be filled anew', async () => {
      return (await engine.getQueue('spent')).live.depth.medium === 2;
    });
    expect(await tokensOf(engine, 'spent')).toBeLessThan(0.1);
    expect(await worker.look(3)).toHaveLength(0);
    await engine.close();
    await redis.stop();
  });

  it('R-CH4: a flush before the first checkpoint gives nothing back', async () => {
    const redis = await startRedis();
    const engine = await server().open({ redisUrl: redis.url });
    const limits = [{ unit: 'requests', rate: 1, perSeconds: aDay, burst: 50 }];
    await engine.putQueue('new', { limits });
    await submitAll(engine, drafts(100, { taskType: 'noop', queue: 'new' }));
    const worker = await TestWorker.register(engine, { queues: ['new'] });
    await worker.completeAll(await worker.take(50));
    await askRedis(redis.url, 'flushall');
    await until('the ready queue to be filled anew', async () => {
      return (await engine.getQueue('new')).live.depth.medium === 50;
    });
    expect(await worker.look(50)).toHaveLength(0);
    await engine.close();
    await redis.stop();
  });

  it('R-CH4: servers that come and go leave the levels in Redis alone', async () => {
    const redisUrl = inject('redisUrl');
    const first = await server().open({ redisUrl });
    const limits = [{ unit: 'requests', rate: 5, perSeconds: aDay, burst: 4 }];
    await first.putQueue('kept', { limits });
    await submitAll(first, drafts(5, { taskType: 'noop', queue: 'kept' }));
    const worker = await TestWorker.register(first, { queues: ['kept'] });
    await worker.completeAll(await worker.take(2));
    await first.close();
    const second = await server().open({ redisUrl });
    expect(await tokensOf(second, 'kept')).toBeCloseTo(2, 1);
  });
});
