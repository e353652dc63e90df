import { afterEach, expect, inject, it } from 'vitest';
import { startRedis } from '../../../test/support/services/redis-server.js';
import { checkRedis } from './check-redis.js';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

it('a Redis that will do: rights, version, eviction and clock are told', async () => {
  const checks = await checkRedis(inject('redisUrl'));
  expect(checks.map(({ what, health }) => [what, health])).toEqual([
    ['Redis', 'ok'],
    ['Redis rights', 'ok'],
    ['Redis version', 'ok'],
    ['Redis eviction', 'ok'],
    ['Redis clock skew', 'ok'],
  ]);
});

it('R-HA5: one that may evict keys is a failure, with what to do', async () => {
  const server = await startRedis({ args: ['--maxmemory-policy', 'allkeys-lfu'] });
  closing.push(() => server.stop());
  expect(await checkRedis(server.url)).toContainEqual({
    what: 'Redis',
    health: 'failed',
    found: expect.stringContaining('allkeys-lfu') as string,
    advice: expect.stringContaining('noeviction') as string,
  });
});

it('R-AD6: one that is not there is a failure, and its password is not shown', async () => {
  const [check] = await checkRedis('redis://me:secret@127.0.0.1:1');
  expect(check).toMatchObject({ what: 'Redis', health: 'failed' });
  expect(check?.found).toContain('ECONNREFUSED');
  expect(check?.found).not.toContain('secret');
});
