import { describe, expect, it } from 'vitest';
import type { Pressure } from '../domain/claim-size.js';
import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { ClaimedTask, PollAnswer, WorkerApi } from '../protocol/workers-api.js';
import { silentLog } from '../runtime/log.js';
import { ClaimLoop } from './claim-loop.js';
import type { PressureGauge } from './pressure.js';
import type { Reports } from './reports.js';
import { Session } from './session.js';
import { Slots } from './slots.js';

const none: Pressure = { memoryShare: 0, eventLoopDelayMs: 0, durationShare: 0 };
const someTask = { taskId: 'task' as TaskId, lease: 'lease' as Lease } as ClaimedTask;

/** What it asks for, one after the other, until all its slots are taken: there is work for all of them. */
async function asks(size: number, felt: Pressure): Promise<number[]> {
  const slots = new Slots(size);
  const asked: number[] = [];
  const poll = async (_: WorkerId, request: { availableCapacity: number }): Promise<PollAnswer> => {
    asked.push(request.availableCapacity);
    const tasks = Array.from({ length: request.availableCapacity }, () => someTask);
    return { tasks, cancelled: [], drain: false };
  };
  const terms = {
    workerId: 'worker' as WorkerId,
    heartbeatIntervalMs: 1_000,
    leaseMs: 3_000,
    pollWaitSeconds: 20,
  };
  const api = { register: async () => terms, poll } as unknown as WorkerApi;
  const session = new Session({
    api,
    registration: {},
    log: silentLog,
    onKeyRefused: () => undefined,
    onRegisteredAgain: () => undefined,
  });
  await session.open(new AbortController().signal);
  const loop = new ClaimLoop({
    session,
    slots,
    onAnswer: ({ tasks }) => tasks.forEach(() => slots.take()),
    reports: { hasRoom: true } as Reports,
    pressure: { read: () => felt } as PressureGauge,
    observer: undefined,
    claimBatch: 50,
    log: silentLog,
  });
  loop.start();
  await slots.when(() => slots.used === size);
  await loop.stop();
  return asked;
}

describe('how many requests a worker needs to fill its slots', () => {
  it('one that waits, and then claims that would go out together go as one', async () => {
    const asked = await asks(1_000, none);
    expect(asked[0]).toBe(50);
    expect(Math.max(...asked)).toBe(200);
    expect(asked.length).toBeLessThanOrEqual(8);
  });

  it('a small worker asks for what it can run', async () => {
    expect(await asks(8, none)).toEqual([8]);
    expect(await asks(150, none)).toEqual([50, 50, 50]);
  });

  it('R-WO3: under pressure one small claim at a time', async () => {
    const asked = await asks(1_000, { ...none, eventLoopDelayMs: 150 });
    expect(Math.max(...asked)).toBe(25);
  });
});
