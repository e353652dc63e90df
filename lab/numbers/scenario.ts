import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { startRedis } from '../../test/support/services/redis-server.js';
import { OneServer } from '../hardening/one-server.js';
import { LabDatabase } from '../shared/database.js';
import type { Lab } from '../shared/lab.js';
import { count, judged, ms, type Row, type Scenario } from '../shared/scenario.js';
import { cli } from '../shared/service.js';
import { Flow } from './flow.js';
import { seedQueued } from './seed.js';

const mostMs = 200;
/** Of the rate that was asked for. */
const leastShare = 0.95;
const paths = ['/metrics', '/api/v1/queue/stats', '/api/v1/queues?limit=100'];

interface Asked {
  readonly path: string;
  readonly tookMs: readonly number[];
  readonly bytes: number;
}

export function many(ready: 'memory' | 'redis'): Scenario {
  return {
    name: ready,
    about: `10,000 queues of 100 tasks and a flow of tasks, with the ready queue in ${ready}`,
    run: (lab) => measure(lab, ready),
  };
}

async function measure(lab: Lab, ready: 'memory' | 'redis'): Promise<readonly Row[]> {
  const queues = lab.size(10_000, 200);
  const tasks = queues * 100;
  const database = await LabDatabase.create(lab.postgresUrl);
  const redis = ready === 'redis' ? await startRedis() : null;
  try {
    spawnSync(process.execPath, [cli, 'migrate', '--database-url', database.url]);
    await seedQueued(database, queues, tasks);
    const args = ['--database-url', database.url, '--max-active', String(10 * tasks)];
    const redisArgs = redis === null ? [] : ['--redis-url', redis.url];
    await using server = await OneServer.start([...args, ...redisArgs]);
    return await observe(lab, server.url, queues, tasks);
  } finally {
    await redis?.stop();
    await database.drop();
  }
}

async function observe(lab: Lab, url: string, queues: number, tasks: number): Promise<Row[]> {
  const flow = new Flow(url);
  const rate = lab.number('rate');
  const flowing = flow.run(rate, queues);
  const hasFlowed = await untilItFlows(flow, rate);
  const before = flow.counts;
  const seconds = lab.number('seconds');
  const asked = await ask(url, seconds * 1_000);
  const after = flow.counts;
  flow.end();
  await flowing;
  const depth = await depthOf(url);
  const expected = tasks + flow.counts.submitted - flow.counts.completed;
  const perSecond = (after.completed - before.completed) / seconds;
  const rows = asked.map(({ path, tookMs, bytes }) => {
    const sorted = tookMs.toSorted((a, b) => a - b);
    const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
    const [first = 0] = tookMs;
    const times = { p50: at(0.5), p99: at(0.99), max: at(1), first };
    const numbers = { ...times, bytes, asked: sorted.length };
    const measured = `${Object.values(times).map(ms).join(', ')}; ${count(bytes)} bytes`;
    const what = `${path}: p50, p99, slowest and first of ${count(sorted.length)}; size`;
    return judged({ what, measured, numbers }, `p99 < ${ms(mostMs)}`, numbers.p99 < mostMs);
  });
  return [
    ...rows,
    judged(
      {
        what: 'tasks completed a second meanwhile',
        measured: hasFlowed ? count(perSecond) : `${count(perSecond)}; it never flowed before`,
        numbers: { perSecond },
      },
      `≥ ${count(leastShare * rate)}`,
      hasFlowed && perSecond >= leastShare * rate,
    ),
    judged(
      {
        what: `depth that was told at the end, of ${count(tasks)} seeded and the flow`,
        measured: count(depth),
        numbers: { depth, expected },
      },
      count(expected),
      depth === expected,
    ),
  ];
}

/** The ready queue is filled by then: a server with Redis serves meanwhile, and slowly. False: it never was. */
async function untilItFlows(flow: Flow, rate: number): Promise<boolean> {
  const endsMs = performance.now() + 240_000;
  while (performance.now() < endsMs) {
    const { completed } = flow.counts;
    await delay(5_000);
    if ((flow.counts.completed - completed) / 5 >= leastShare * rate) return true;
  }
  return false;
}

/** Each of them twice a second. */
async function ask(url: string, forMs: number): Promise<Asked[]> {
  const endsMs = performance.now() + forMs;
  return Promise.all(
    paths.map(async (path) => {
      const tookMs: number[] = [];
      let bytes = 0;
      while (performance.now() < endsMs) {
        const beganMs = performance.now();
        const answer = await fetch(`${url}${path}`);
        bytes = (await answer.arrayBuffer()).byteLength;
        if (!answer.ok) throw new Error(`${path} was answered ${String(answer.status)}`);
        tookMs.push(performance.now() - beganMs);
        await delay(500);
      }
      return { path, tookMs, bytes };
    }),
  );
}

async function depthOf(url: string): Promise<number> {
  await delay(6_000);
  const answer = await fetch(`${url}/api/v1/queue/stats`);
  const { queues } = (await answer.json()) as { queues: Record<string, { depth: number }> };
  return Object.values(queues).reduce((sum, { depth }) => sum + depth, 0);
}
