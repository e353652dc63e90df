import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from './client.js';

/** The statement that gives a user all that Sluice needs, and no more. */
export const rightsAdvice =
  'ACL SETUSER <user> ~sluice:* &sluice:* +@all -@dangerous +info gives what is needed.';

/**
 * Runs every command that our scripts use, on a key that is gone when it ends. Each stands here as the
 * scripts write it: a test compares the two.
 */
export const probeScript = `
local key = KEYS[1]
local refused = nil
local function call(command, ...)
  local reply = redis.pcall(command, ...)
  if refused == nil and type(reply) == 'table' and reply.err then
    refused = { err = reply.err .. ' (' .. command .. ')' }
  end
end
call('TIME')
call('INFO', 'memory')
call('EXISTS', key)
call('DEL', key)
call('SET', key, '1')
call('GET', key)
call('PEXPIRE', key, 1000)
call('UNLINK', key)
call('HSET', key, 'a', '1')
call('HGET', key, 'a')
call('HMGET', key, 'a')
call('HEXISTS', key, 'a')
call('HLEN', key)
call('HINCRBY', key, 'a', 1)
call('HRANDFIELD', key)
call('HSCAN', key, '0')
call('HDEL', key, 'a')
call('SADD', key, 'a', 'b')
call('SCARD', key)
call('SISMEMBER', key, 'a')
call('SRANDMEMBER', key)
call('SMEMBERS', key)
call('SPOP', key)
call('SREM', key, 'a', 'b')
call('DEL', key)
call('ZADD', key, 1, 'a', 2, 'b')
call('ZCARD', key)
call('RENAME', key, key)
call('ZMSCORE', key, 'a', 'b')
call('ZRANDMEMBER', key, 1)
call('ZRANGE', key, 0, 0)
call('ZRANGEBYSCORE', key, 0, 1)
call('ZREVRANGE', key, 0, 0)
call('ZRANK', key, 'a')
call('ZSCORE', key, 'a')
call('ZPOPMIN', key)
call('ZREM', key, 'a')
call('ZREMRANGEBYRANK', key, 0, 0)
call('DEL', key)
return refused or 1`;

/** What Redis says when a user may not do something; version 6 says it differently inside a script. */
const noPermission = /\bNOPERM\b|user executing the script can't/;

export function isRefusal({ message }: Error): boolean {
  return noPermission.test(message);
}

/** Tries what we do, with the rights of our user. Null: nothing is refused. */
export async function findMissingRight(
  client: RedisClient,
  prefix: string,
): Promise<string | null> {
  const key = `${prefix}rights`;
  return (
    (await refusalOf(client.eval(probeScript, 1, key))) ??
    (await refusalOf(searchOnce(client, key))) ??
    (await refusalOf(client.publish(`${prefix}bus`, ''))) ??
    refusalOf(listenOnce(client, `${prefix}bus`))
  );
}

/** On every node that is searched when older contents are discarded. */
async function searchOnce(client: RedisClient, key: string): Promise<void> {
  const nodes = client instanceof Cluster ? client.nodes('master') : [client];
  await Promise.all(nodes.map((node) => node.scan('0', 'MATCH', key, 'COUNT', 1)));
}

/** On a connection of its own: one that listens can't do much else. */
async function listenOnce(client: RedisClient, channel: string): Promise<void> {
  const node = client instanceof Cluster ? client.nodes('master')[0] : client;
  if (node === undefined) return;
  const listener: Redis = node.duplicate({ autoResubscribe: false, lazyConnect: true });
  listener.on('error', () => undefined);
  try {
    await listener.connect();
    await listener.subscribe(channel);
  } finally {
    listener.disconnect();
  }
}

/** Any other failure is not about rights: a full Redis, say. */
async function refusalOf(asked: Promise<unknown>): Promise<string | null> {
  try {
    await asked;
    return null;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return isRefusal(error) ? error.message : null;
  }
}
