import { setTimeout as delay } from 'node:timers/promises';
import type { TaskDraft } from '../../../src/protocol/api.js';
import { deliveryDelays, timesOf, type Claim } from '../claims.js';
import { Cluster, requests } from '../cluster.js';
import type { Lab } from '../../shared/lab.js';
import { jitterOf, mostInWindow, shareUsed, spreadOf, type Spread } from '../../shared/measure.js';
import { Probe } from '../probe.js';
import {
  count,
  judged,
  ms,
  noted,
  percent,
  type Row,
  type Scenario,
} from '../../shared/scenario.js';
import type { Call } from '../stand-in.js';

interface Arrangement {
  readonly title: string;
  readonly servers: number;
  readonly ready: 'memory' | 'redis';
  readonly workers: number;
  /** One server killed after a third of the time, Redis flushed after two. */
  readonly faults: boolean;
}

interface LimitedQueue {
  readonly name: string;
  readonly perMinute: number;
}

interface Observed {
  readonly windowSeconds: number;
  readonly claims: readonly Claim[];
  readonly calls: readonly Call[];
  readonly probe: Spread;
}

const arrangements: readonly Arrangement[] = [
  { title: '1 server, memory', servers: 1, ready: 'memory', workers: 2, faults: false },
  { title: '1 server, Redis', servers: 1, ready: 'redis', workers: 2, faults: false },
  { title: '3 servers, Redis', servers: 3, ready: 'redis', workers: 6, faults: false },
  {
    title: '3 servers, Redis, one server killed, Redis flushed',
    servers: 3,
    ready: 'redis',
    workers: 6,
    faults: true,
  },
];
const leastShare = 0.995;
const warmUpMs = 1_000;

export const rates: Scenario = {
  name: 'rates',
  about: 'never more than R in any sliding window, and 99.5 % of R used while there is work',
  run: async (lab) => {
    const rows: Row[] = [];
    for (const arrangement of arrangements) {
      lab.progress.say(`  ${arrangement.title}`);
      rows.push(...(await measureTwoRates(lab, arrangement)));
    }
    lab.progress.say('  40 queues, memory');
    rows.push(...(await measureManyQueues(lab)));
    if (lab.long) rows.push(...(await measureSlowRate(lab)));
    return rows;
  },
};

/** Both at once: two queues beside each other are two limits. */
async function measureTwoRates(lab: Lab, arrangement: Arrangement): Promise<Row[]> {
  const queues = [600, 6_000].map((perMinute) => ({ name: `r${perMinute}`, perMinute }));
  const observed = await observe(lab, arrangement, queues, 'call', lab.size(65, 9));
  return [
    ...queues.flatMap((queue) => rowsOf(arrangement, queue, observed)),
    jitterRow(arrangement.title, observed),
  ];
}

async function measureSlowRate(lab: Lab): Promise<Row[]> {
  const arrangement: Arrangement = {
    title: '3 servers, Redis, 10 minutes',
    servers: 3,
    ready: 'redis',
    workers: 6,
    faults: false,
  };
  const queue = { name: 'r20', perMinute: 20 };
  const observed = await observe(lab, arrangement, [queue], 'call', lab.size(600, 60));
  return rowsOf(arrangement, queue, observed);
}

async function measureManyQueues(lab: Lab): Promise<Row[]> {
  const arrangement: Arrangement = {
    title: '40 queues, 1 server, memory',
    servers: 1,
    ready: 'memory',
    workers: 2,
    faults: false,
  };
  const queues = Array.from({ length: 40 }, (_, n) => ({ name: `many-${n}`, perMinute: 600 }));
  const observed = await observe(lab, arrangement, queues, 'noop', lab.size(65, 9));
  const windowMs = observed.windowSeconds * 1000 - claimJitter(observed);
  const limit = allowed(600, observed.windowSeconds);
  const times = queues.map(({ name }) => timesOf(observed.claims, name));
  const most = Math.max(...times.map((one) => mostInWindow(one, windowMs)));
  const least = Math.min(...times.map((one) => shareUsed(one, 600 / 60_000, warmUpMs)));
  const what = `600/min each, ${arrangement.title}`;
  return [
    judged(
      {
        what: `${what}: most claims of any queue in ${windowText(windowMs)}`,
        measured: count(most),
        numbers: { most, windowMs },
      },
      `≤ ${count(limit)}`,
      most <= limit,
    ),
    judged(
      { what: `${what}: least share used`, measured: percent(least, 2), numbers: { least } },
      `≥ ${percent(leastShare)}`,
      least >= leastShare,
    ),
  ];
}

async function observe(
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

function allowed(perMinute: number, windowSeconds: number): number {
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

function rowsOf(
  { title, faults }: Arrangement,
  { name, perMinute }: LimitedQueue,
  observed: Observed,
): Row[] {
  const { windowSeconds, claims, calls } = observed;
  const what = `${count(perMinute)}/min, ${title}`;
  const limit = allowed(perMinute, windowSeconds);
  const claimed = timesOf(claims, name);
  const received = calls.filter(({ queue }) => queue === name).map(({ receivedAt }) => receivedAt);
  const share = shareUsed(claimed, perMinute / 60_000, warmUpMs);
  const used = {
    what: `${what}: share used`,
    measured: percent(share, 2),
    numbers: { share, claims: claimed.length },
  };
  return [
    windowRow(`${what}: most claims`, claimed, limit, windowSeconds, claimJitter(observed)),
    windowRow(`${what}: most calls`, received, limit, windowSeconds, callJitter(observed)),
    faults ? noted(used) : judged(used, `≥ ${percent(leastShare)}`, share >= leastShare),
  ];
}

function windowRow(
  what: string,
  times: readonly number[],
  limit: number,
  windowSeconds: number,
  jitterMs: number,
): Row {
  const windowMs = windowSeconds * 1000 - jitterMs;
  const most = mostInWindow(times, windowMs);
  const inWhole = mostInWindow(times, windowSeconds * 1000);
  return judged(
    {
      what: `${what} in ${windowText(windowMs)}`,
      measured: `${count(most)}; in the whole ${windowSeconds} s ${count(inWhole)}`,
      numbers: { most, inWhole, windowMs, limit },
    },
    `≤ ${count(limit)}`,
    most <= limit,
  );
}

/** From the grant to the claim; see `Probe`. */
function claimJitter({ probe }: Observed): number {
  return probe.most - probe.least;
}

/** From the grant to the call: what the claim may be late by, and the way from there. */
function callJitter(observed: Observed): number {
  const { claims, calls } = observed;
  return claimJitter(observed) + jitterOf(deliveryDelays(claims, calls));
}

function jitterRow(title: string, observed: Observed): Row {
  const { median, p99, most } = spreadOf(deliveryDelays(observed.claims, observed.calls));
  const { probe } = observed;
  return noted({
    what: `${title}: from claim to call; a look at Postgres through the server`,
    measured:
      `median ${ms(median)}, p99 ${ms(p99)}, most ${ms(most)}; ` +
      `median ${ms(probe.median)}, most ${ms(probe.most)}`,
    numbers: { median, p99, most, probeMedian: probe.median, probeMost: probe.most },
  });
}

const windowText = (windowMs: number): string => `${(windowMs / 1000).toFixed(3)} s`;
