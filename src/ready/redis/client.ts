import { Cluster, Redis } from 'ioredis';
import type { RedisAddress } from '../../runtime/redis-url.js';

export type RedisClient = Redis | Cluster;

/** Longer than any script of ours takes, shorter than a poll notices. */
export const patienceMs = 2_000;

export function createClient(address: RedisAddress): RedisClient {
  const { hosts, tls, masterName, sentinelPassword } = address;
  switch (address.kind) {
    case 'standalone':
      return new Redis({ ...hosts[0], ...singleOptions(address) });
    case 'sentinel':
      return new Redis({
        ...singleOptions(address),
        sentinels: hosts.map((host) => ({ ...host })),
        name: masterName,
        sentinelRetryStrategy: backoffMs,
        sentinelCommandTimeout: patienceMs,
        ...(sentinelPassword === null ? {} : { sentinelPassword }),
        ...(tls ? { enableTLSForSentinelMode: true, sentinelTLS: {} } : {}),
      });
    case 'cluster':
      return new Cluster(
        hosts.map((host) => ({ ...host })),
        {
          redisOptions: commonOptions(address),
          enableOfflineQueue: false,
          clusterRetryStrategy: backoffMs,
          slotsRefreshTimeout: patienceMs,
          // A command that was under way when its node went may have been done: never twice.
          retryDelayOnFailover: 0,
          retryDelayOnClusterDown: 0,
          // It was not done, since its slot moves to another node: 16 times at most.
          retryDelayOnTryAgain: 20,
        },
      );
  }
}

/** A connection of its own, but for a cluster, which keeps one for its subscriptions by itself. */
export function createSubscriber(client: RedisClient): RedisClient {
  if (client instanceof Cluster) return client;
  return client.duplicate({ autoResubscribe: false });
}

/** Learns anew who holds the slots of a cluster: a node that was lost is found again, or its heir. */
export async function findNodes(client: RedisClient): Promise<void> {
  if (!(client instanceof Cluster)) return;
  await new Promise<void>((resolve, reject) => {
    client.refreshSlotsCache((error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

function singleOptions(address: RedisAddress) {
  return { ...commonOptions(address), enableOfflineQueue: false, retryStrategy: backoffMs };
}

/**
 * Whatever can't be done now fails now: the ready queue is a hint, and whoever asks goes on without
 * it. No automatic pipelines: they run one at a time, and a take would wait for the answer of
 * whatever was sent before it. Calls come in batches anyway.
 */
function commonOptions({ username, password, db, tls }: RedisAddress) {
  return {
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password }),
    ...(tls ? { tls: {} } : {}),
    db,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: patienceMs,
    commandTimeout: patienceMs,
    // A server that hangs keeps its sockets open: silence is how it shows.
    socketTimeout: patienceMs,
    maxLoadingRetryTime: 500,
    keepAlive: 10_000,
    reconnectOnError: isOfFormerMaster,
  };
}

function backoffMs(attempt: number): number {
  return Math.min(50 * 2 ** Math.min(attempt - 1, 10), 1_000);
}

/** After a failover the same address may lead to a replica: connecting anew finds the master. */
function isOfFormerMaster({ message }: Error): boolean {
  return message.includes('READONLY');
}
