import { Client } from 'pg';
import { expect, it, onTestFinished } from 'vitest';

import { deliveryDelays, readClaims, timesOf } from '../../lab/limits/claims.js';
import { jitterOf, mostBeyondRate, mostInWindow, overlapOf } from '../../lab/shared/measure.js';
import { Probe } from '../../lab/limits/probe.js';
import { startStandIn } from '../../lab/limits/stand-in.js';
import type { QueueDraft } from '../../src/protocol/queues-api.js';
import type { TaskDraft } from '../../src/protocol/tasks-api.js';
import { createTestDatabase } from '../support/postgres.js';
import { askRedis, startRedis } from '../support/services/redis-server.js';
import { until } from '../support/until.js';
import { labTasks, startTestWorker, TestServer } from './servers.js';

/** Ends a hung test; how long it takes is the machine's matter. */
const patienceMs = 120_000;
const windowMs = 1_000;
const paced = { rate: 20, count: 160 };
const burst = { rate: 6, burst: 40, count: 100 };
/** Long enough to be running still when Redis has its contents again. */
const slots = { most: 7, count: 42, holdMs: 1_500 };
const total = paced.count + burst.count + slots.count;

const queues: Readonly<Record<string, QueueDraft>> = {
  paced: { limits: [{ unit: 'requests', rate: paced.rate, perSeconds: 1, burst: null }] },
  burst: { limits: [{ unit: 'requests', rate: burst.rate, perSeconds: 1, burst: burst.burst }] },
  slots: { maxConcurrency: slots.most },
};
const drafts: readonly TaskDraft[] = [
  ...calls('paced', paced.count, 0),
  ...calls('burst', burst.count, 0),
  ...calls('slots', slots.count, slots.holdMs),
];

it('R-CH4, R-CH6, R-CH12, R-RE7: limits hold over 3 servers, one of them killed, Redis flushed', async () => {
  const { url: databaseUrl, drop } = await createTestDatabase();
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  onTestFinished(async () => {
    await client.end();
    await drop();
  });
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

  const callsOf = (queue: string) => standIn.calls.filter((call) => call.queue === queue);
  const begun = (count: number) => () => callsOf('slots').length > count;
  await patiently('the second turn of the slots', begun(slots.most));
  const restarting = second.restart('SIGKILL');
  await patiently('the fourth turn of the slots', begun(3 * slots.most));
  await askRedis(redis.url, 'flushall');
  await patiently('every task to be called', () => standIn.calls.length >= total);
  await restarting;
  const query = async <Row extends object>(text: string) => (await client.query<Row>(text)).rows;
  await patiently('every result to be in', async () => {
    return (await query('select from sluice.tasks limit 1')).length === 0;
  });

  const { least, most } = await probe.stop();
  const claims = await readClaims({ query });
  const jitterMs = most - least + jitterOf(deliveryDelays(claims, standIn.calls));

  // None is lost, and none has run twice, though answers to polls were.
  const ended = await query<{ status: string }>('select status from sluice.task_history');
  expect(ended.filter(({ status }) => status === 'completed')).toHaveLength(total);
  expect(new Set(standIn.calls.map(({ taskId }) => taskId)).size).toBe(total);
  expect(standIn.calls).toHaveLength(total);

  expect(mostInWindow(timesOf(claims, 'paced'), windowMs - jitterMs)).toBeLessThanOrEqual(
    paced.rate,
  );
  // A bucket that forgot its level would be full again, and pass up to 40 more.
  const beyondRate = mostBeyondRate(timesOf(claims, 'burst'), burst.rate / 1_000, jitterMs);
  expect(beyondRate).toBeLessThanOrEqual(burst.burst);

  const atOnce = overlapOf(
    callsOf('slots').map(({ receivedAt, answeredAt }) => ({
      from: receivedAt,
      to: answeredAt ?? receivedAt,
    })),
    slots.most,
    Infinity,
  );
  expect(atOnce.most).toBe(slots.most);
});

function calls(queue: string, length: number, holdMs: number): TaskDraft[] {
  const parameters = { hold_ms: holdMs };
  return Array.from({ length }, () => ({ taskType: 'call', queue, parameters }));
}

async function patiently(awaited: string, probe: () => boolean | Promise<boolean>): Promise<void> {
  await until(awaited, probe, { deadlineMs: patienceMs });
}
