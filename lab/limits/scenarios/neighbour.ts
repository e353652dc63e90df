import { setTimeout as delay } from 'node:timers/promises';
import { Cluster, requests } from '../cluster.js';
import type { Lab } from '../../shared/lab.js';
import { median, spreadOf } from '../../shared/measure.js';
import { count, judged, ms, withSpread, type Row, type Scenario } from '../../shared/scenario.js';

interface Round {
  /** Tasks per second. */
  readonly throughput: number;
  /** From submit to claim, one in a hundred takes longer. */
  readonly p99Ms: number;
}

const tolerance = 0.1;
const submitEveryMs = 5;

export const neighbour: Scenario = {
  name: 'neighbour',
  about: 'a queue without limits, alone and beside one with 1 a minute and 100,000 tasks that wait',
  run: async (lab) => [...(await compare(lab, 'memory')), ...(await compare(lab, 'redis'))],
};

async function compare(lab: Lab, ready: 'memory' | 'redis'): Promise<Row[]> {
  await using alone = await Cluster.start(lab.postgresUrl, { servers: 1, ready });
  await using beside = await Cluster.start(lab.postgresUrl, { servers: 1, ready });
  await beside.put('slow', { limits: [requests(1, 60)] });
  const waiting = lab.size(100_000, 5_000);
  lab.progress.say(`  ${ready}: ${count(waiting)} tasks of the slow queue are submitted`);
  for (let left = waiting; left > 0; left -= 5_000) {
    await beside.submit(Array.from({ length: 5_000 }, () => ({ taskType: 'noop', queue: 'slow' })));
  }
  await Promise.all(
    [alone, beside].map((cluster) => cluster.startWorkers({ workers: 4, concurrency: 50 })),
  );
  const rounds = { alone: [] as Round[], beside: [] as Round[] };
  // The first of each is to warm up.
  for (let round = 0; round <= lab.size(5, 1); round += 1) {
    for (const [name, cluster] of Object.entries({ alone, beside })) {
      const measured = await measureRound(lab, cluster, `busy-${round}`);
      if (round > 0) rounds[name as keyof typeof rounds].push(measured);
      lab.progress.say(
        `  ${ready}, ${name}: ${count(measured.throughput)}/s, p99 ${ms(measured.p99Ms)}`,
      );
    }
  }
  return [
    throughputRow(ready, rounds.alone, rounds.beside),
    p99Row(ready, rounds.alone, rounds.beside),
  ];
}

async function measureRound(lab: Lab, cluster: Cluster, queue: string): Promise<Round> {
  const length = lab.size(10_000, 1_000);
  const draft = { taskType: 'sleep', parameters: { ms: 1 } };
  await cluster.submit(Array.from({ length }, () => ({ ...draft, queue: `${queue}-bulk` })));
  await untilEnded(cluster, `${queue}-bulk`, length);

  const api = cluster.api();
  const singly = lab.size(1_500, 200);
  const submits: Promise<unknown>[] = [];
  for (let index = 0; index < singly; index += 1) {
    submits.push(api.submit({ ...draft, queue: `${queue}-single` }));
    await delay(submitEveryMs);
  }
  await Promise.all(submits);
  await untilEnded(cluster, `${queue}-single`, singly);
  return {
    throughput: await throughputOf(cluster, `${queue}-bulk`),
    p99Ms: spreadOf(await waitsOf(cluster, `${queue}-single`)).p99,
  };
}

async function untilEnded(cluster: Cluster, queue: string, length: number): Promise<void> {
  for (;;) {
    const [row] = await cluster.database.query<{ count: number }>(
      'select count(*)::integer as count from sluice.task_history where queue = $1',
      [queue],
    );
    if ((row?.count ?? 0) >= length) return;
    await delay(100);
  }
}

async function throughputOf(cluster: Cluster, queue: string): Promise<number> {
  const [row] = await cluster.database.query<{ rate: number }>(
    `select count(*) / extract(epoch from max(ended_at) - min(created_at))::float8 as rate
     from sluice.task_history where queue = $1`,
    [queue],
  );
  return row?.rate ?? 0;
}

async function waitsOf(cluster: Cluster, queue: string): Promise<number[]> {
  const rows = await cluster.database.query<{ wait_ms: number }>(
    `select (extract(epoch from started_at - created_at) * 1000)::float8 as wait_ms
     from sluice.task_history where queue = $1`,
    [queue],
  );
  return rows.map(({ wait_ms }) => wait_ms);
}

function throughputRow(ready: string, alone: readonly Round[], beside: readonly Round[]): Row {
  const [without, withSlow] = [alone, beside].map((rounds) =>
    rounds.map(({ throughput }) => throughput),
  ) as [number[], number[]];
  const ratio = median(withSlow) / median(without);
  return judged(
    {
      what: `${ready}: tasks per second alone; beside the slow queue; ratio`,
      measured: `${withSpread(without, count)}; ${withSpread(withSlow, count)}; ${ratio.toFixed(2)}`,
      numbers: { without: median(without), withSlow: median(withSlow), ratio },
    },
    `≥ ${(1 - tolerance).toFixed(1)}`,
    ratio >= 1 - tolerance,
  );
}

function p99Row(ready: string, alone: readonly Round[], beside: readonly Round[]): Row {
  const [without, withSlow] = [alone, beside].map((rounds) => rounds.map(({ p99Ms }) => p99Ms)) as [
    number[],
    number[],
  ];
  const ratio = median(withSlow) / median(without);
  return judged(
    {
      what: `${ready}: p99 from submit to claim alone; beside the slow queue; ratio`,
      measured: `${withSpread(without, ms)}; ${withSpread(withSlow, ms)}; ${ratio.toFixed(2)}`,
      numbers: { without: median(without), withSlow: median(withSlow), ratio },
    },
    `≤ ${(1 + tolerance).toFixed(1)}`,
    ratio <= 1 + tolerance,
  );
}
