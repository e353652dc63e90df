import { Cluster } from '../cluster.js';
import { drainOnce, type Load } from '../../shared/drain-once.js';
import { shareCpu } from '../cpu-share.js';
import type { Lab } from '../../shared/lab.js';
import { median } from '../../shared/measure.js';
import {
  count,
  judged,
  noted,
  withSpread,
  type Row,
  type Scenario,
} from '../../shared/scenario.js';

const rounds = 5;
const smallRounds = 3;
const serverShare = 0.25;
const smallMs = 50;

export const drain: Scenario = {
  name: 'drain',
  about: 'how fast a backlog goes: three servers against one, Redis against memory, by turns',
  run: async (lab) => [
    await compareServers(lab),
    await compareSmallServers(lab),
    await compareReadyQueues(lab),
  ],
};

async function compareServers(lab: Lab): Promise<Row> {
  await using one = await Cluster.start(lab.postgresUrl, { servers: 1, ready: 'redis' });
  await using three = await Cluster.start(lab.postgresUrl, { servers: 3, ready: 'redis' });
  const load = { taskType: 'sleep', parameters: { ms: 20 }, length: lab.size(30_000, 2_000) };
  const workers = { workers: 20, concurrency: 10 };
  const { ofOne, ofThree } = await byTurns(lab, { ofOne: one, ofThree: three }, workers, load);
  const ratio = median(ofThree) / median(ofOne);
  return judged(
    {
      what: '20 ms tasks, 20 workers with 10 slots: tasks per second with one server; three; ratio',
      measured: `${withSpread(ofOne, count)}; ${withSpread(ofThree, count)}; ${ratio.toFixed(2)}`,
      numbers: { one: median(ofOne), three: median(ofThree), ratio },
    },
    '> 1',
    ratio > 1,
  );
}

/** One machine has so many cores: here each server gets its part of one, as if on a machine alone. */
async function compareSmallServers(lab: Lab): Promise<Row> {
  const what =
    `${smallMs} ms tasks, 20 workers with 10 slots, each server with ${serverShare} of a core: ` +
    'tasks per second with one server; three; ratio';
  await using one = await Cluster.start(lab.postgresUrl, { servers: 1, ready: 'redis' });
  await using three = await Cluster.start(lab.postgresUrl, { servers: 3, ready: 'redis' });
  const end = shareCpu([...one.serverPids, ...three.serverPids], serverShare);
  if (end === null) {
    return noted({
      what,
      measured: 'not here: the kernel gives us no control groups',
      numbers: {},
    });
  }
  try {
    const load = {
      taskType: 'sleep',
      parameters: { ms: smallMs },
      length: lab.size(30_000, 2_000),
    };
    const workers = { workers: 20, concurrency: 10 };
    const sides = { ofOneSmall: one, ofThreeSmall: three };
    const measured = await byTurns(lab, sides, workers, load, smallRounds);
    const { ofOneSmall, ofThreeSmall } = measured;
    const ratio = median(ofThreeSmall) / median(ofOneSmall);
    const shown = `${withSpread(ofOneSmall, count)}; ${withSpread(ofThreeSmall, count)}`;
    return judged(
      {
        what,
        measured: `${shown}; ${ratio.toFixed(2)}`,
        numbers: { one: median(ofOneSmall), three: median(ofThreeSmall), ratio },
      },
      '> 1',
      ratio > 1,
    );
  } finally {
    end();
  }
}

async function compareReadyQueues(lab: Lab): Promise<Row> {
  await using memory = await Cluster.start(lab.postgresUrl, { servers: 1, ready: 'memory' });
  await using redis = await Cluster.start(lab.postgresUrl, { servers: 1, ready: 'redis' });
  const load = { taskType: 'noop', length: lab.size(30_000, 2_000) };
  const workers = { workers: 4, concurrency: 200 };
  const sides = { inMemory: memory, inRedis: redis };
  const { inMemory, inRedis } = await byTurns(lab, sides, workers, load);
  const ratio = median(inRedis) / median(inMemory);
  return judged(
    {
      what: 'empty tasks, one server: tasks per second with memory; Redis; ratio',
      measured: `${withSpread(inMemory, count)}; ${withSpread(inRedis, count)}; ${ratio.toFixed(2)}`,
      numbers: { memory: median(inMemory), redis: median(inRedis), ratio },
    },
    '≥ 0.7',
    ratio >= 0.7,
  );
}

/** The rates of each, after a tenth of the load to warm up. */
async function byTurns<Name extends string>(
  lab: Lab,
  clusters: Readonly<Record<Name, Cluster>>,
  workers: { workers: number; concurrency: number },
  load: Load,
  times = rounds,
): Promise<Readonly<Record<Name, readonly number[]>>> {
  const named = Object.entries(clusters) as [Name, Cluster][];
  await Promise.all(named.map(([, cluster]) => cluster.startWorkers(workers)));
  const rates = named.map(([name, cluster]) => ({ name, cluster, measured: [] as number[] }));
  const warmUp = { ...load, length: load.length / 10 };
  for (const { cluster } of rates) await drainOnce(lab, cluster, 'warm-up', warmUp);
  for (let round = 1; round <= lab.size(times, 1); round += 1) {
    for (const { name, cluster, measured } of rates) {
      measured.push(await drainOnce(lab, cluster, `drain-${round}`, load));
      lab.progress.say(`  ${name}: ${count(measured.at(-1) ?? 0)}/s`);
    }
  }
  const measured = rates.map((rate) => [rate.name, rate.measured]);
  return Object.fromEntries(measured) as Record<Name, number[]>;
}
