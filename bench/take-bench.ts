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
const takes = 5_000;
const rounds = 9;
const warmUps = 3;
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
  // What the other side left behind is not this side's to clear away.
  globalThis.gc?.();
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

/** Filled and taken from so many times: a take in memory is too short to be measured a few times. */
async function measureOften(
  ready: ReadyQueue,
  queues: number,
  times: number,
  lose: () => Promise<void>,
): Promise<number> {
  let sum = 0;
  for (let time = 0; time < times; time += 1) {
    await lose();
    sum += await measure(ready, queues);
  }
  return sum / times;
}

async function compare(
  name: string,
  ready: ReadyQueue,
  times: number,
  lose: () => Promise<void>,
): Promise<void> {
  const one: number[] = [];
  const many: number[] = [];
  for (let round = 0; round < warmUps + rounds; round += 1) {
    const ofOne = await measureOften(ready, 1, times, lose);
    const ofMany = await measureOften(ready, tasks, times, lose);
    if (round < warmUps) continue;
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
await compare('memory', memory, 20, async () => undefined);

const redis = await startRedis();
const connection = await openRedis(redis.url, silentLog);
const prefix = 'sluice:{bench}:';
const bus = new RedisBus(connection, prefix);
const shared = new RedisReadyQueue({ connection, bus, prefix, log: silentLog });
await compare('Redis', shared, 1, async () => {
  await connection.client.flushall();
});
await shared.close();
await bus.close();
await connection.close();
await redis.stop();
