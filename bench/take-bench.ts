// What one take costs on many queues against one: `npm run bench:take`.
import { firstIdAt } from '../src/domain/ids.js';
import { MemoryReadyQueue } from '../src/ready/memory-ready-queue.js';
import type { Offer, ReadyQueue, TakeRequest } from '../src/ready/ready-queue.js';
import { RedisBus } from '../src/ready/redis/bus.js';
import { openRedis } from '../src/ready/redis/connection.js';
import { RedisReadyQueue } from '../src/ready/redis/redis-ready-queue.js';
import { systemClock } from '../src/runtime/clock.js';
import { silentLog } from '../src/runtime/log.js';
import { startRedis } from '../test/support/services/redis-server.js';

const tasks = 10_000;
const takes = 4_000;
const rounds = 7;
const anyWork: TakeRequest = { taskTypes: ['t'], capabilities: [], queues: null, count: 1 };

let generation = 0;

async function fill(ready: ReadyQueue, queues: number): Promise<void> {
  generation += 1;
  const begun = await ready.beginRestore(generation);
  if (begun !== 'yours') throw new Error('somebody else uses this queue');
  const nothing = { limits: [], queues: [], levels: [], running: [] };
  await ready.restore({ generation, ...nothing });
  for (let from = 0; from < tasks; from += 1_000) {
    const offers = Array.from({ length: 1_000 }, (_, index) => toOffer(from + index, queues));
    await ready.offer(offers);
  }
}

function toOffer(index: number, queues: number): Offer {
  return {
    taskId: firstIdAt(index + 1),
    lane: { queue: `q${String(index % queues)}`, taskType: 't', capabilities: [] },
    priority: 'medium',
    ageMs: 0,
    eligibleAtMs: index,
    seq: index,
    cost: {},
  };
}

/** Microseconds a take, one after the other. */
async function measure(ready: ReadyQueue, queues: number): Promise<number> {
  await fill(ready, queues);
  const beganMs = performance.now();
  for (let taken = 0; taken < takes; taken += 1) {
    const answer = await ready.take(anyWork);
    if (answer.kind !== 'taken') throw new Error(`a take was answered ${answer.kind}`);
  }
  return ((performance.now() - beganMs) * 1000) / takes;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function compare(name: string, ready: ReadyQueue, lose: () => Promise<void>): Promise<void> {
  const one: number[] = [];
  const many: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    await lose();
    const ofOne = await measure(ready, 1);
    await lose();
    const ofMany = await measure(ready, tasks);
    // The first round warms up.
    if (round === 0) continue;
    one.push(ofOne);
    many.push(ofMany);
  }
  const ratios = many.map((value, index) => value / (one[index] ?? Number.NaN));
  const shown = [median(one), median(many)].map((value) => `${value.toFixed(1)} µs`);
  const spread = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
  console.log(
    `${name}: one queue of 10,000 ${shown[0] ?? ''}, 10,000 queues of one ${shown[1] ?? ''}, ` +
      `ratio ${median(ratios).toFixed(2)} (${spread}), at most 1.5`,
  );
}

const memory = new MemoryReadyQueue({ clock: systemClock });
await compare('memory', memory, async () => undefined);

const redis = await startRedis();
const connection = await openRedis(redis.url, silentLog);
const prefix = 'sluice:{bench}:';
const bus = new RedisBus(connection, prefix);
const shared = new RedisReadyQueue({ connection, bus, prefix, log: silentLog });
await compare('Redis', shared, async () => {
  await connection.client.flushall();
});
await shared.close();
await bus.close();
await connection.close();
await redis.stop();
