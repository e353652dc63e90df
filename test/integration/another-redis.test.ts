import { afterAll, beforeAll, expect, inject, it } from 'vitest';

import { MixedServersError } from '../../src/engine/open-engine.js';
import { askRedis, startRedis, type RunningRedis } from '../support/services/redis-server.js';
import { until } from '../support/until.js';
import { describeOnPostgres } from './support.js';

// A lease that a busy machine does not let lapse by itself.
const settings = { servingLeaseMs: 5_000, servingRenewMs: 300 };

describeOnPostgres('servers with different Redises', (server) => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const open = (redisUrl: string) => server().open({ settings, redisUrl });

  it('R-CH12: the second is refused, and says why', async () => {
    const first = await open(redis.url);
    const other = open(inject('redisUrl'));
    await expect(other).rejects.toThrow(MixedServersError);
    await expect(other).rejects.toThrow(/another Redis.*REDIS_URL/);
    expect(first.notServing()).toBeNull();
  });

  it('R-CH12: it is refused as well when one of those who serve has just left', async () => {
    const first = await open(redis.url);
    const second = await open(redis.url);
    const leaves = second.close();
    await expect(open(inject('redisUrl'))).rejects.toThrow(MixedServersError);
    await leaves;
    expect(first.notServing()).toBeNull();
  });

  it('R-CH12: one Redis by two names is one, also after a flush', async () => {
    const first = await open(redis.url);
    const byName = redis.url.replace('127.0.0.1', 'localhost');
    expect(byName).not.toBe(redis.url);
    await open(byName);
    await askRedis(redis.url, 'flushall');
    const third = await open(byName);
    for (const engine of [first, third]) expect(engine.notServing()).toBeNull();
  });

  it('R-CH12: another Redis may be used when nobody serves from the old one any more', async () => {
    const first = await open(redis.url);
    await first.close();
    const second = await open(inject('redisUrl'));
    await until('the second to serve', () => second.notServing() === null);
  });
});
