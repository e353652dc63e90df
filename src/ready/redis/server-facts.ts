import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from './client.js';

export interface ServerFacts {
  /** As Redis counts; Valkey says the version of Redis that it is compatible with. */
  readonly version: string;
  readonly evictionPolicy: string;
}

const leastVersion = [6, 2] as const;

/** Of every server that may hold our keys. Throws while one of them does not answer. */
export async function readServerFacts(client: RedisClient): Promise<readonly ServerFacts[]> {
  if (!(client instanceof Cluster)) return [await factsOf(client)];
  return Promise.all(
    client.nodes('master').map(async (node) => {
      const state = field(await node.cluster('INFO'), 'cluster_state');
      if (state !== 'ok') throw new Error(`the state of the cluster is ${state}`);
      return factsOf(node);
    }),
  );
}

async function factsOf(server: Redis): Promise<ServerFacts> {
  const [about, memory] = await Promise.all([server.info('server'), server.info('memory')]);
  return {
    version: field(about, 'redis_version'),
    evictionPolicy: field(memory, 'maxmemory_policy'),
  };
}

export async function readClockMs(client: RedisClient): Promise<number> {
  const [seconds = NaN, microseconds = NaN] = (await client.time()).map(Number);
  return seconds * 1000 + microseconds / 1000;
}

export function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < leastVersion[0] || (major === leastVersion[0] && minor < leastVersion[1]);
}

export const neededVersion = leastVersion.join('.');

/**
 * Whether a full Redis may delete keys of ours. The "volatile-…" policies delete only keys that expire: of ours that is
 * `building` alone, and a restore that loses it begins anew. Many hosted services have "volatile-lru" by default.
 */
export function mayEvict(evictionPolicy: string): boolean {
  return evictionPolicy.startsWith('allkeys-');
}

function field(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
}
