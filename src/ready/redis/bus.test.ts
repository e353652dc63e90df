import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTestRedis, type TestRedis } from '../../../test/support/redis.js';
import { startRedisCluster } from '../../../test/support/services/redis-cluster.js';
import { startRedis } from '../../../test/support/services/redis-server.js';
import { until } from '../../../test/support/until.js';
import type { JsonValue } from '../../domain/json.js';
import { silentLog } from '../../runtime/log.js';
import { RedisBus } from './bus.js';
import { openRedis } from './connection.js';

let redis: TestRedis;
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  redis = await createTestRedis();
});

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await redis.close();
});

interface Member {
  readonly bus: RedisBus;
  readonly heard: JsonValue[];
}

async function join(url: string, prefix: string): Promise<Member> {
  const connection = await openRedis(url, silentLog);
  const bus = new RedisBus(connection, prefix);
  const heard: JsonValue[] = [];
  bus.subscribe((message) => heard.push(message));
  closing.push(
    () => connection.close(),
    () => bus.close(),
  );
  return { bus, heard };
}

/** Says it until it is heard: a subscription takes a moment. */
async function meet(speaker: Member, listener: Member): Promise<void> {
  await until('the bus to carry', () => {
    speaker.bus.publish('hello');
    return listener.heard.includes('hello');
  });
}

describe('RedisBus', () => {
  it('all others hear, in order; the sender does not', async () => {
    const [one, two, three] = await Promise.all([
      join(redis.url, redis.prefix),
      join(redis.url, redis.prefix),
      join(redis.url, redis.prefix),
    ]);
    await meet(one, two);
    await meet(one, three);
    const messages = [{ kind: 'wake', lanes: ['a'], count: 2 }, [1, null, 'ü'], false];
    for (const message of messages) one.bus.publish(message);
    await until('the last message', () => two.heard.at(-1) === false);
    await until('the last message', () => three.heard.at(-1) === false);
    expect(two.heard.slice(-3)).toEqual(messages);
    expect(three.heard.slice(-3)).toEqual(messages);
    expect(one.heard).toEqual([]);
  });

  it('other prefixes, malformed messages and listeners that throw disturb nobody', async () => {
    const [one, two] = await Promise.all([
      join(redis.url, redis.prefix),
      join(redis.url, redis.prefix),
    ]);
    const stranger = await join(redis.url, `${redis.prefix}other:`);
    two.bus.subscribe(() => {
      throw new Error('not today');
    });
    await meet(one, two);
    for (const text of ['', '{', 'null', '7', '{"from":"me"}', '{"message":1}']) {
      await redis.client.publish(`${redis.prefix}bus`, text);
    }
    stranger.bus.publish('for others');
    const before = two.heard.length;
    one.bus.publish('last');
    await until('the last message', () => two.heard.at(-1) === 'last');
    expect(two.heard.slice(before).filter((message) => message !== 'hello')).toEqual(['last']);
  });

  it('whoever left hears nothing more', async () => {
    const [one, two, three] = await Promise.all([
      join(redis.url, redis.prefix),
      join(redis.url, redis.prefix),
      join(redis.url, redis.prefix),
    ]);
    await meet(one, two);
    await meet(one, three);
    await two.bus.close();
    const before = two.heard.length;
    one.bus.publish('after');
    await until('the message', () => three.heard.at(-1) === 'after');
    expect(two.heard.length).toBe(before);
  });

  it('R-CH14: carries between servers that are connected to different nodes of a cluster', async () => {
    const cluster = await startRedisCluster();
    closing.push(() => cluster.stop());
    const members = await Promise.all([1, 2, 3, 4].map(() => join(cluster.url, redis.prefix)));
    const [speaker, ...others] = members;
    if (speaker === undefined) throw new Error('four were asked for');
    for (const other of others) await meet(speaker, other);
    await cluster.nodes[0]?.kill('SIGKILL');
    await cluster.nodes[0]?.restart();
    for (const { heard } of others) heard.length = 0;
    for (const other of others) await meet(speaker, other);
    expect(speaker.heard).toEqual([]);
  });

  it('R-RE7: carries on after Redis was killed and started again', async () => {
    const server = await startRedis();
    closing.push(() => server.stop());
    const [one, two] = [await join(server.url, 'a:'), await join(server.url, 'a:')];
    await meet(one, two);
    await server.kill('SIGKILL');
    one.bus.publish('lost');
    await server.restart();
    two.heard.length = 0;
    await meet(one, two);
    expect(two.heard).not.toContain('lost');
  });
});
