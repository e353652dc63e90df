import { Pool } from 'pg';
import { expect, it, onTestFinished } from 'vitest';

import { deliveryDelays, readClaims, timesOf } from '../../lab/limits/claims.js';
import { jitterOf, mostInWindow, overlapOf } from '../../lab/limits/measure.js';
import { Probe } from '../../lab/limits/probe.js';
import { startStandIn, type Call } from '../../lab/limits/stand-in.js';
import type { QueueChange, TaskDraft } from '../../src/protocol/api.js';
import { createTestDatabase } from '../support/postgres.js';
import { askRedis, startRedis } from '../support/services/redis-server.js';
import { until } from '../support/until.js';
import { labTasks, startTestWorker, TestServer } from './servers.js';

/** Ends a hung test; how long it takes is the machine's matter. */
const patienceMs = 120_000;
const windowMs = 1_000;
const paced = { rate: 20, count: 160 };
const burst = { rate: 10, burst: 40, count: 100 };
const slots = { most: 7, count: 300 };
const total = paced.count + burst.count + slots.count;

const queues: Readonly<Record<string, QueueChange>> = {
  paced: { limits: [{ unit: 'requests', rate: paced.rate, perSeconds: 1, burst: null }] },
  burst: { limits: [{ unit: 'requests', rate: burst.rate, perSeconds: 1, burst: burst.burst }] },
  slots: { maxConcurrency: slots.most },
};
const drafts: readonly TaskDraft[] = [
  ...calls('paced', paced.count, 0),
  ...calls('burst', burst.count, 0),
  ...calls('slots', slots.count, 60),
];

it('R-CH4, R-CH6, R-CH12, R-RE7: limits hold over 3 servers, one of them killed, Redis flushed', async () => {
  const { url: databaseUrl, drop } = await createTestDatabase();
  onTestFinished(drop);
  const pool = new Pool({ connectionString: databaseUrl, max: 1 });
  onTestFinished(() => pool.end());
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const standIn = await startStandIn();
  onTestFinished(() => standIn.close());

  const servers = await Promise.all(
    Array.from({ length: 3 }, () => TestServer.start(databaseUrl, redis.url)),
  );
  const [first, second] = servers as [TestServer, TestServer];
  for (const [name, change] of Object.entries(queues)) await first.api.putQueue(name, change);
  const outcomes = await first.api.submitMany(drafts);
  expect(outcomes.filter(({ kind }) => kind === 'refused')).toEqual([]);
  const probe = new Probe(servers.map(({ url }) => url));
  const env = { STAND_IN_URL: standIn.url };
  const worker = { module: labTasks, concurrency: 20, env };
  await Promise.all(servers.map((server) => startTestWorker(server, worker)));

  await untilCalled(standIn.calls, total / 3);
  const restarting = second.killAndRestart();
  await untilCalled(standIn.calls, (2 * total) / 3);
  await askRedis(redis.url, 'flushall');
  await untilCalled(standIn.calls, total);
  await restarting;
  const query = async <Row extends object>(text: string) => (await pool.query<Row>(text)).rows;
  await until(
    'every result to be in',
    async () => (await query('select from sluice.tasks limit 1')).length === 0,
    { deadlineMs: patienceMs },
  );

  const { least, most } = await probe.stop();
  const claims = await readClaims({ query });
  const jitterMs = most - least + jitterOf(deliveryDelays(claims, standIn.calls));
  const ofQueue = (queue: string) => standIn.calls.filter((call) => call.queue === queue);

  // None is lost, and none has run twice, though answers to polls were.
  const ended = await query<{ status: string }>('select status from sluice.task_history');
  expect(ended.filter(({ status }) => status === 'completed')).toHaveLength(total);
  expect(new Set(standIn.calls.map(({ taskId }) => taskId)).size).toBe(total);
  expect(standIn.calls).toHaveLength(total);

  expect(mostInWindow(timesOf(claims, 'paced'), windowMs - jitterMs)).toBeLessThanOrEqual(
    paced.rate,
  );
  // A bucket that forgot its level would be full again: 40 more than this.
  const bursts = timesOf(claims, 'burst');
  const tookMs = (bursts.at(-1) ?? 0) - (bursts[0] ?? 0) + jitterMs;
  expect(bursts.length).toBeLessThanOrEqual(burst.burst + (burst.rate * tookMs) / 1_000 + 1);

  const atOnce = overlapOf(
    ofQueue('slots').map(({ receivedAt, answeredAt }) => ({
      from: receivedAt,
      to: answeredAt ?? receivedAt,
    })),
    slots.most,
    Infinity,
  );
  expect(atOnce.most).toBe(slots.most);
}, 300_000);

function calls(queue: string, length: number, holdMs: number): TaskDraft[] {
  const parameters = { hold_ms: holdMs };
  return Array.from({ length }, () => ({ taskType: 'call', queue, parameters }));
}

async function untilCalled(made: readonly Call[], count: number): Promise<void> {
  await until(`${Math.round(count)} calls`, () => made.length >= count, {
    deadlineMs: patienceMs,
  });
}
