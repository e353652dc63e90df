import { describe, expect, it } from 'vitest';
import { defaultEngineSettings } from '../engine/settings.js';
import {
  refuseConflicts,
  serverConflicts,
  workerConflicts,
  type ServerTimes,
  type WorkerTimes,
} from './setting-conflicts.js';

const {
  wakeOrder: _order,
  maxActive: _ceiling,
  maxActiveMedium: _medium,
  maxActiveLow: _low,
  submitLimitPerKey: _perKey,
  submitLimitPerUser: _perUser,
  tasks: _tasks,
  ...defaults
} = defaultEngineSettings;

describe('settings that contradict each other', () => {
  it('R-RE10: the defaults contradict nothing', () => {
    expect(serverConflicts(defaults)).toEqual([]);
    expect(workerConflicts({ drainTimeoutMs: 30_000 })).toEqual([]);
  });

  /** What just holds, what just does not, and the two values that the sentence names. */
  const pairs: [Partial<ServerTimes>, Partial<ServerTimes>, RegExp][] = [
    [
      { leaseMs: 20_001 },
      { leaseMs: 20_000 },
      /^leaseMs \(20000\) must be more than twice heartbeatIntervalMs \(10000\): /,
    ],
    [
      { servingLeaseMs: 4_001 },
      { servingLeaseMs: 4_000 },
      /^servingLeaseMs \(4000\) must be more than twice servingRenewMs \(2000\): /,
    ],
    [
      { sweepIntervalMs: 30_000 },
      { sweepIntervalMs: 30_001 },
      /^sweepIntervalMs \(30001\) must be at most leaseMs \(30000\): /,
    ],
    [
      { unstartedMs: 10_001 },
      { unstartedMs: 10_000 },
      /^unstartedMs \(10000\) must be more than heartbeatIntervalMs \(10000\): /,
    ],
    [
      { pollWaitSeconds: 60 },
      { pollWaitSeconds: 61 },
      /^pollWaitSeconds \(61\) must be at most 60, the seconds that a call may wait: /,
    ],
    [
      { retainEndedDays: 1 },
      { retainEndedDays: 0 },
      /^retainEndedDays must be a whole number of days from 1, for which an idempotency key .*, not 0\.$/,
    ],
    [
      { retainDeadLettersDays: 36_500 },
      { retainDeadLettersDays: 1.5 },
      /^retainDeadLettersDays must be a whole number of days from 1, .* to 36500, not 1\.5\.$/,
    ],
    [{ timeoutGraceMs: 0 }, { timeoutGraceMs: -1 }, /^timeoutGraceMs \(-1\) must be 0 or more\.$/],
    [{ benchMs: 1 }, { benchMs: 0 }, /^benchMs \(0\) must be more than 0\.$/],
    [
      { discoverIntervalMs: 1 },
      { discoverIntervalMs: NaN },
      /^discoverIntervalMs \(NaN\) must be more than 0\.$/,
    ],
  ];

  it.each(pairs)('R-RE10: %o holds, %o is refused in one sentence', (good, bad, sentence) => {
    expect(serverConflicts({ ...defaults, ...good })).toEqual([]);
    expect(serverConflicts({ ...defaults, ...bad })).toEqual([expect.stringMatching(sentence)]);
  });

  const ofWorkers: [Partial<WorkerTimes>, RegExp][] = [
    [
      { maxIdleMs: 60_000, maxLifetimeMs: 60_000 },
      /^maxIdleMs \(60000\) must be less than maxLifetimeMs \(60000\): /,
    ],
    [{ drainTimeoutMs: -1 }, /^drainTimeoutMs \(-1\) must be 0 or more\.$/],
    [{ maxIdleMs: 0 }, /^maxIdleMs \(0\) must be more than 0\.$/],
  ];

  it.each(ofWorkers)('R-RE10: a worker with %o is refused in one sentence', (times, sentence) => {
    expect(workerConflicts(times)).toEqual([expect.stringMatching(sentence)]);
  });

  it('R-RE10: all of them are told at once', () => {
    const conflicts = serverConflicts({ ...defaults, leaseMs: 500, servingLeaseMs: 500 });
    expect(conflicts).toHaveLength(3);
    expect(() => {
      refuseConflicts(conflicts);
    }).toThrow(conflicts.join('\n'));
  });
});
