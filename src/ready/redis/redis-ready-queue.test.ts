import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import { agreeOnRandomHistories } from '../random-histories.contract.js';
import { describeReadyQueueContract, type ReadyQueueUnderTest } from '../ready-queue.contract.js';
import { openRedis, type RedisConnection } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';

let connection: RedisConnection;

beforeAll(async () => {
  connection = await openRedis(inject('redisUrl'), silentLog);
});

afterAll(() => connection.close());

function newPrefix(): string {
  return `sluice:{${randomBytes(6).toString('hex')}}:`;
}

async function make(): Promise<ReadyQueueUnderTest> {
  const clock = new ManualClock();
  const prefix = newPrefix();
  const queue = new RedisReadyQueue({
    connection,
    bus: new LocalBus(),
    prefix,
    clock,
    log: silentLog,
  });
  return {
    queue,
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    driftMs: 0,
    lose: async () => {
      await connection.client.hdel(`${prefix}meta`, 'generation');
    },
  };
}

describeReadyQueueContract('RedisReadyQueue', make);

describe('RedisReadyQueue', () => {
  it('R-CH10: answers random histories as a queue that sorts everything each time', async () => {
    await agreeOnRandomHistories(make, 200);
  });
});
