import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { TaskDraft } from '../../../src/protocol/tasks-api.js';
import { Cluster, requests } from '../../limits/cluster.js';
import { timesOf } from '../../limits/claims.js';
import { mostInWindow, overlapOf } from '../../shared/measure.js';
import { count, judged, seconds, type Row, type Scenario } from '../../shared/scenario.js';

const slots = 3;
const perSecond = 10;
/** Work goes on in each of these. */
const busy = ['few', 'slow', 'sharing-a', 'sharing-b', 'plain', 'flow'];
const withinMs = 5_000;
const patienceMs = 20_000;

export const lostKeys: Scenario = {
  name: 'lost-keys',
  about:
    'Every key that the ready queue has in Redis is deleted, one at a time, while 2 servers and 2 workers are at it',
  run: async (lab) => {
    await using cluster = await Cluster.start(lab.postgresUrl, { servers: 2, ready: 'redis' });
    await configure(cluster);
    await cluster.startWorkers({ workers: 2, concurrency: 40 });
    const redis = new Redis(cluster.redisUrl);
    const feeding = new Feeding(cluster);
    try {
      await lab.progress.wait('work', 2_000);
      const names = await keysOf(redis, lab.quick);
      const waits = new Map<string, number>();
      using steps = lab.progress.steps('deleted', names.length);
      for (const name of names) {
        const deletedAt = Date.now();
        if ((await redis.del(name)) > 0) waits.set(name, await untilAllGoOn(cluster, deletedAt));
        steps.step();
      }
      return [goesOnRow(waits), ...(await limitRows(cluster))];
    } finally {
      await feeding.stop();
      redis.disconnect();
    }
  },
};

async function configure(cluster: Cluster): Promise<void> {
  await cluster.put('few', { maxConcurrency: slots });
  await cluster.put('slow', { limits: [requests(perSecond, 1)] });
  await cluster.api().putLimit('account', requests(perSecond, 1));
  for (const queue of ['sharing-a', 'sharing-b']) {
    await cluster.put(queue, { limits: [{ use: 'account' }] });
  }
  await cluster.put('paused', { paused: true });
  await cluster.submit(tasks('paused', 200));
  await cluster.submit(tasks('plain', 500));
}

/** Keeps something waiting in every queue. */
class Feeding {
  readonly #cluster: Cluster;
  readonly #done: Promise<void>;
  #isOver = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#done = this.#feed();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  async #feed(): Promise<void> {
    while (!this.#isOver) {
      const counts = await waitingIn(this.#cluster);
      const drafts = busy.flatMap((queue) =>
        tasks(queue, Math.max(0, 100 - (counts.get(queue) ?? 0))),
      );
      if (drafts.length > 0) await this.#cluster.submit(drafts).catch(() => undefined);
      await delay(250);
    }
  }
}

async function waitingIn({ database }: Cluster): Promise<Map<string, number>> {
  const rows = await database.query<{ queue: string; waiting: number }>(
    'select queue, count(*)::integer as waiting from sluice.tasks group by queue',
  );
  return new Map(rows.map(({ queue, waiting }) => [queue, waiting]));
}

/** Quick: one of each kind. */
async function keysOf(redis: Redis, isQuick: boolean): Promise<readonly string[]> {
  const found = (await redis.keys('sluice:*')).sort();
  if (!isQuick) return found;
  const kindOf = (name: string) => name.replace(/^sluice:\{[^}]*\}:(\d+:)?([^:]*).*$/s, '$2');
  return [...new Map(found.map((name) => [kindOf(name), name])).values()];
}

async function untilAllGoOn(cluster: Cluster, sinceMs: number): Promise<number> {
  for (;;) {
    const rows = await cluster.database.query<{ queue: string }>(`
      select queue from sluice.tasks where started_at > to_timestamp(${sinceMs} / 1000.0)
      union
      select queue from sluice.task_history where started_at > to_timestamp(${sinceMs} / 1000.0)`);
    const going = new Set(rows.map(({ queue }) => queue));
    const waitedMs = Date.now() - sinceMs;
    if (busy.every((queue) => going.has(queue)) || waitedMs > patienceMs) {
      // What goes on at once may stand still a moment later: the next look is after the audit.
      await delay(1_000);
      return waitedMs;
    }
    await delay(50);
  }
}

function goesOnRow(waits: ReadonlyMap<string, number>): Row {
  const [slowest, worstMs] = [...waits].reduce((worst, wait) =>
    wait[1] > worst[1] ? wait : worst,
  );
  const late = [...waits.values()].filter((waitMs) => waitMs > withinMs).length;
  return judged(
    {
      what: `of ${waits.size} keys, after which work stood still for more than ${seconds(withinMs, 0)}; the longest`,
      measured: `${late}; ${seconds(worstMs)} (${slowest.replace(/^sluice:\{[^}]*\}:/, '').replaceAll('\n', ' ')})`,
      numbers: { keys: waits.size, late, worstMs },
    },
    '0',
    late === 0,
  );
}

async function limitRows(cluster: Cluster): Promise<Row[]> {
  const claims = await cluster.claims();
  const { calls } = cluster.standIn;
  const stretches = calls
    .filter(({ queue }) => queue === 'few')
    .map(({ receivedAt, answeredAt }) => ({ from: receivedAt, to: answeredAt ?? receivedAt }));
  const atOnce = overlapOf(stretches, slots, Infinity).most;
  const slow = mostInWindow(timesOf(claims, 'slow'), 990);
  const shared = claims.filter(({ queue }) => queue.startsWith('sharing')).map(({ at }) => at);
  const sharing = mostInWindow(shared, 990);
  const started = timesOf(claims, 'paused').length;
  return [
    judged(
      {
        what: `at once at the service, of max_concurrency ${slots}`,
        measured: count(atOnce),
        numbers: { atOnce },
      },
      `≤ ${slots}`,
      atOnce <= slots,
    ),
    judged(
      {
        what: `most claims in 1 s less 10 ms, of ${perSecond} a second: own limit; shared limit`,
        measured: `${slow}; ${sharing}`,
        numbers: { slow, sharing },
      },
      `≤ ${perSecond}; ≤ ${perSecond}`,
      slow <= perSecond && sharing <= perSecond,
    ),
    judged(
      { what: 'claims of a paused queue', measured: count(started), numbers: { started } },
      '0',
      started === 0,
    ),
  ];
}

function tasks(queue: string, length: number): TaskDraft[] {
  return Array.from({ length }, (_, index) => ({
    taskType: 'call',
    queue,
    priority: index % 5 === 0 ? ('low' as const) : ('medium' as const),
    parameters: { hold_ms: 20 },
    ...(queue === 'flow' ? { workflowId: `flow-${index % 10}` } : {}),
  }));
}
