// One side of take-bench, alone in its process: what the other side leaves behind in memory, and
// what the compiler has learned from it, is not this side's.
// node --expose-gc --import tsx bench/take-side.ts <queues> <fills> [redis url]
import { firstIdAt } from '../src/domain/ids.js';
import { MemoryReadyQueue } from '../src/ready/memory-ready-queue.js';
import type { Offer, ReadyQueue, TakeRequest } from '../src/ready/ready-queue.js';
import { RedisBus } from '../src/ready/redis/bus.js';
import { openRedis } from '../src/ready/redis/connection.js';
import { RedisReadyQueue } from '../src/ready/redis/redis-ready-queue.js';
import { systemClock } from '../src/runtime/clock.js';
import { silentLog } from '../src/runtime/log.js';
import { median } from './median.js';

const tasks = 10_000;
const takes = 5_000;
const warmUps = 3;
const anyWork: TakeRequest = { taskTypes: ['t'], capabilities: [], queues: null, count: 1 };

interface Opened {
  readonly ready: ReadyQueue;
  readonly empty: () => Promise<void>;
  readonly close: () => Promise<void>;
}

async function openMemory(): Promise<Opened> {
  const ready = new MemoryReadyQueue({ clock: systemClock });
  return { ready, empty: async () => undefined, close: () => ready.close() };
}

async function openOnRedis(url: string): Promise<Opened> {
  const connection = await openRedis(url, silentLog);
  const prefix = 'sluice:{bench}:';
  const bus = new RedisBus(connection, prefix);
  const ready = new RedisReadyQueue({ connection, bus, prefix, log: silentLog });
  return {
    ready,
    empty: async () => {
      await connection.client.flushall();
    },
    close: async () => {
      await ready.close();
      await bus.close();
      await connection.close();
    },
  };
}

async function fill(ready: ReadyQueue, queues: number, generation: number): Promise<void> {
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
async function measure(ready: ReadyQueue): Promise<number> {
  // What filling left behind is not the takes' to clear away.
  globalThis.gc?.();
  const beganMs = performance.now();
  for (let taken = 0; taken < takes; taken += 1) {
    const answer = await ready.take(anyWork);
    if (answer.kind !== 'taken') throw new Error(`a take was answered ${answer.kind}`);
  }
  return ((performance.now() - beganMs) * 1000) / takes;
}

const [queues = 1, fills = 1] = process.argv.slice(2, 4).map(Number);
const redisUrl = process.argv[4];
const { ready, empty, close } =
  redisUrl === undefined ? await openMemory() : await openOnRedis(redisUrl);
const measured: number[] = [];
for (let generation = 1; generation <= warmUps + fills; generation += 1) {
  await empty();
  await fill(ready, queues, generation);
  const microseconds = await measure(ready);
  if (generation > warmUps) measured.push(microseconds);
}
await close();
console.log(median(measured));
