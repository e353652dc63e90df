import { setTimeout as delay } from 'node:timers/promises';
import type { Claim } from '../../lab/limits/claims.js';
import { Cluster, requests } from '../../lab/limits/cluster.js';
import { Probe } from '../../lab/limits/probe.js';
import type { Call } from '../../lab/limits/stand-in.js';
import type { Lab } from '../../lab/shared/lab.js';
import type { Spread } from '../../lab/shared/measure.js';
import type { TaskDraft } from '../../src/protocol/tasks-api.js';

export interface Arrangement {
  readonly title: string;
  readonly servers: number;
  readonly ready: 'memory' | 'redis';
  readonly workers: number;
  /** One server killed after a third of the time, Redis flushed after two. */
  readonly faults: boolean;
}

export interface LimitedQueue {
  readonly name: string;
  readonly perMinute: number;
}

export interface Observed {
  readonly windowSeconds: number;
  readonly claims: readonly Claim[];
  readonly calls: readonly Call[];
  readonly probe: Spread;
}

export const arrangements = {
  oneInMemory: {
    title: '1 server, memory',
    servers: 1,
    ready: 'memory',
    workers: 2,
    faults: false,
  },
  oneOnRedis: { title: '1 server, Redis', servers: 1, ready: 'redis', workers: 2, faults: false },
  three: { title: '3 servers, Redis', servers: 3, ready: 'redis', workers: 6, faults: false },
  threeWithFaults: {
    title: '3 servers, Redis, one server killed, Redis flushed',
    servers: 3,
    ready: 'redis',
    workers: 6,
    faults: true,
  },
} as const satisfies Readonly<Record<string, Arrangement>>;

/** All queues at once: two beside each other are two limits. There is always more work than they let through. */
export async function observe(
  lab: Lab,
  arrangement: Arrangement,
  queues: readonly LimitedQueue[],
  taskType: 'call' | 'noop',
  runSeconds: number,
): Promise<Observed> {
  const windowSeconds = lab.size(60, 6);
  await using cluster = await Cluster.start(lab.postgresUrl, arrangement);
  for (const { name, perMinute } of queues) {
    await cluster.put(name, {
      limits: [requests(allowed(perMinute, windowSeconds), windowSeconds)],
    });
    await cluster.submit(enoughTasks(name, taskType, perMinute, runSeconds));
  }
  const probe = new Probe(cluster.urls);
  await cluster.startWorkers({ workers: arrangement.workers, concurrency: 50 });
  const faults = arrangement.faults ? makeFaults(cluster, runSeconds) : Promise.resolve();
  await Promise.all([lab.progress.wait(arrangement.title, runSeconds * 1000), faults]);
  const spread = await probe.stop();
  await cluster.stopWorkers();
  return {
    windowSeconds,
    claims: await cluster.claims(),
    calls: cluster.standIn.calls,
    probe: spread,
  };
}

async function makeFaults(cluster: Cluster, runSeconds: number): Promise<void> {
  const thirdMs = (runSeconds * 1000) / 3;
  const flushing = delay(2 * thirdMs).then(() => cluster.flushRedis());
  await delay(thirdMs);
  await cluster.killServer(1);
  await flushing;
}

export function allowed(perMinute: number, windowSeconds: number): number {
  return (perMinute * windowSeconds) / 60;
}

/** Some are left over: a queue that runs out of work uses less than it may. */
function enoughTasks(
  queue: string,
  taskType: string,
  perMinute: number,
  runSeconds: number,
): TaskDraft[] {
  const length = Math.ceil((perMinute / 60) * (runSeconds + 10));
  return Array.from({ length }, () => ({ taskType, queue }));
}
