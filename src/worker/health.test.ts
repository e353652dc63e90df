import { describe, expect, it } from 'vitest';
import { judgeHealth, type WorkerCondition } from './health.js';

const well: WorkerCondition = {
  isRegistered: true,
  isDraining: false,
  failedHeartbeats: 0,
  sinceHeartbeatMs: 5_000,
  heartbeatIntervalMs: 10_000,
  eventLoopDelayMs: 10,
};

describe('R-OB11: the health of a worker', () => {
  it('is good while its server hears it, and after one lost heartbeat', () => {
    const good = { isHealthy: true, isReady: true, reason: null };
    expect(judgeHealth(well)).toEqual(good);
    expect(judgeHealth({ ...well, failedHeartbeats: 1 })).toEqual(good);
  });

  it('is good but not ready while it drains', () => {
    expect(judgeHealth({ ...well, isDraining: true })).toMatchObject({
      isHealthy: true,
      isReady: false,
    });
  });

  it.each([
    [{ isRegistered: false }, 'has not registered'],
    [{ failedHeartbeats: 2 }, 'no heartbeat for 5 s'],
    [{ sinceHeartbeatMs: 20_001 }, 'no heartbeat for 20 s'],
    [{ eventLoopDelayMs: 1_500 }, 'blocked for 1500 ms'],
  ])('is bad: %j', (change, reason) => {
    const health = judgeHealth({ ...well, ...change });
    expect(health).toMatchObject({ isHealthy: false, isReady: false });
    expect(health.reason).toContain(reason);
  });
});
