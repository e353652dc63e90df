// One side of the takes of growth, alone in its process: what the other side leaves behind in memory, and
// what the compiler has learned from it, is not this side's.
// node --import tsx bench/growth/take-side.ts <queues> <rounds> <takes> [redis url]
import { firstIdAt } from '../../src/domain/ids.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import type { Offer, ReadyQueue, Taken, TakeRequest } from '../../src/ready/ready-queue.js';
import { RedisBus } from '../../src/ready/redis/bus.js';
import { openRedis } from '../../src/ready/redis/connection.js';
import { RedisReadyQueue } from '../../src/ready/redis/redis-ready-queue.js';
import { systemClock } from '../../src/runtime/clock.js';
import { silentLog } from '../../src/runtime/log.js';
import { median } from '../median.js';

const tasks = 10_000;
const warmUps = 5;
const nothingUsed = { reserved: {}, usage: null };
const anyWork: TakeRequest = { taskTypes: ['t'], capabilities: [], queues: null, count: 1 };

interface Opened {
  readonly ready: ReadyQueue;
  readonly close: () => Promise<void>;
}

function openMemory(): Opened {
  const ready = new MemoryReadyQueue({ clock: systemClock });
  return { ready, close: () => ready.close() };
}

async function openOnRedis(url: string): Promise<Opened> {
  const connection = await openRedis(url, silentLog);
  await connection.client.flushall();
  const prefix = 'sluice:{bench}:';
  const bus = new RedisBus(connection, prefix);
  const ready = new RedisReadyQueue({ connection, bus, prefix, log: silentLog });
  return {
    ready,
    close: async () => {
      await ready.close();
      await bus.close();
      await connection.close();
    },
  };
}

async function open(ready: ReadyQueue): Promise<void> {
  const begun = await ready.beginRestore(1);
  if (begun !== 'yours') throw new Error('somebody else uses this queue');
  await ready.restore({
    generation: 1,
    limits: [],
    queues: [],
    levels: [],
    running: [],
    behind: [],
  });
}

async function offer(ready: ReadyQueue, offers: readonly Offer[]): Promise<void> {
  for (let from = 0; from < offers.length; from += 1_000) {
    await ready.offer(offers.slice(from, from + 1_000));
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

interface Round {
  /** A take, one after the other. */
  readonly microseconds: number;
  readonly taken: readonly Taken[];
}

async function takeMany(ready: ReadyQueue): Promise<Round> {
  const taken: Taken[] = [];
  // No collection is asked for before: it would throw away compiled code, whose hidden classes have no
  // instance at that moment, and the takes would measure the interpreter.
  const beganMs = performance.now();
  for (let time = 0; time < takes; time += 1) {
    const answer = await ready.take(anyWork);
    if (answer.kind !== 'taken') throw new Error(`a take was answered ${answer.kind}`);
    taken.push(...answer.entries);
  }
  return { microseconds: ((performance.now() - beganMs) * 1000) / takes, taken };
}

/** As in the life of a queue: what was taken ends, and as much comes in anew. */
async function refill(ready: ReadyQueue, taken: readonly Taken[], offers: readonly Offer[]) {
  await ready.confirm(taken);
  const finished = taken.map(({ taskId, grant, lane }) => ({
    taskId,
    grant,
    queue: lane.queue,
    ...nothingUsed,
  }));
  await ready.finish(finished);
  const ended = new Set(taken.map(({ taskId }) => taskId));
  await offer(
    ready,
    offers.filter(({ taskId }) => ended.has(taskId)),
  );
}

const [queues = 1, rounds = 1, takes = 1] = process.argv.slice(2, 5).map(Number);
const redisUrl = process.argv[5];
const { ready, close } = redisUrl === undefined ? openMemory() : await openOnRedis(redisUrl);
const offers = Array.from({ length: tasks }, (_, index) => toOffer(index, queues));
await open(ready);
await offer(ready, offers);
const measured: number[] = [];
for (let round = 1; round <= warmUps + rounds; round += 1) {
  const { microseconds, taken } = await takeMany(ready);
  if (round > warmUps) measured.push(microseconds);
  await refill(ready, taken, offers);
}
await close();
console.log(median(measured));
