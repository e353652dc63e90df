import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { SluiceError } from '../domain/errors.js';
import type { Lease, TaskId } from '../domain/ids.js';
import type { Report, ReportAnswer } from '../protocol/workers-api.js';
import { Gate } from '../../test/support/gate.js';
import { silentLog } from '../runtime/log.js';
import { Reports } from './reports.js';

function report(result: string): Report {
  return {
    taskId: randomUUID() as TaskId,
    lease: randomUUID() as Lease,
    status: 'completed',
    result,
  };
}

function accept(reports: readonly Report[]): ReportAnswer[] {
  return reports.map(({ taskId }) => ({ taskId, accepted: true, status: 'completed' }));
}

function reporting(
  send: (reports: readonly Report[]) => Promise<readonly ReportAnswer[]>,
  { maxUnacknowledged = 1_000, maxUnacknowledgedBytes = 1e9 } = {},
) {
  return new Reports({ send, maxUnacknowledged, maxUnacknowledgedBytes, log: silentLog });
}

describe('Reports', () => {
  it('a lone result goes at once; those that end meanwhile go together', async () => {
    const batches: number[] = [];
    let answerFirst: () => void = () => undefined;
    const reports = reporting(async (batch) => {
      batches.push(batch.length);
      if (batches.length === 1) await new Promise<void>((resolve) => (answerFirst = resolve));
      return accept(batch);
    });
    reports.send(report('first'));
    await Promise.resolve();
    for (let i = 0; i < 20; i += 1) reports.send(report(String(i)));
    expect(reports.unacknowledged).toHaveLength(21);
    answerFirst();
    await reports.whenEmpty();
    expect(batches).toEqual([1, 20]);
    expect(reports.unacknowledged).toEqual([]);
  });

  it('R-WO9: while the server is away results are kept, count as held, and are sent again', async () => {
    let failures = 0;
    const held: number[] = [];
    const reports: Reports = reporting(async (batch) => {
      held.push(reports.unacknowledged.length);
      if (failures < 2) {
        failures += 1;
        throw new SluiceError('unavailable', 'away');
      }
      return accept(batch);
    });
    await new Promise<unknown>((heard) => reports.send(report('kept'), heard));
    expect(held).toEqual([1, 1, 1]);
    await reports.whenEmpty();
  });

  it('one that is refused fails alone, with the reason; its neighbours are taken', async () => {
    const taken: Report[] = [];
    const reports = reporting(async (batch) => {
      if (batch.some((one) => one.status === 'completed' && one.result === 'huge')) {
        throw new SluiceError('payload_too_large', 'more than 1 MiB');
      }
      taken.push(...batch);
      return accept(batch);
    });
    const results = ['a', 'b', 'huge', 'c', 'd'].map(report);
    await Promise.all(
      results.map((result) => new Promise<unknown>((heard) => reports.send(result, heard))),
    );
    const byTask = new Map(taken.map((one) => [one.taskId, one]));
    const completed = { status: 'completed' };
    const failed = { status: 'failed', error: { code: 'RESULT_TOO_LARGE', retriable: false } };
    expect(results.map(({ taskId }) => byTask.get(taskId))).toMatchObject([
      ...[completed, completed],
      failed,
      ...[completed, completed],
    ]);
  });

  it.each([
    ['too many', { maxUnacknowledged: 1 }],
    ['too much', { maxUnacknowledgedBytes: 3 }],
  ])('R-WO9: has room until %s waits for the server', async (_, bounds) => {
    let answer: () => void = () => undefined;
    const reports = reporting(async (batch) => {
      await new Promise<void>((resolve) => (answer = resolve));
      return accept(batch);
    }, bounds);
    await reports.whenRoom();
    reports.send(report('one'));
    let hasRoom = false;
    const room = reports.whenRoom().then(() => (hasRoom = true));
    await Promise.resolve();
    expect(hasRoom).toBe(false);
    answer();
    await room;
    expect(reports.hasRoom).toBe(true);
  });

  it('R-WO9: large results share no call that would be too large for the server', async () => {
    const batches: number[] = [];
    const reports = reporting(async (batch) => {
      batches.push(batch.length);
      return accept(batch);
    });
    const large = 'x'.repeat(1024 * 1024);
    for (let i = 0; i < 10; i += 1) reports.send(report(large));
    await reports.whenEmpty();
    expect(Math.max(...batches)).toBeLessThanOrEqual(4);
    expect(batches.reduce((sum, count) => sum + count)).toBe(10);
  });

  describe('with results that a proxy refuses for their content', () => {
    const isPoisoned = (one: Report) => one.status === 'completed' && one.result === 'poisoned';

    it('R-HA1: after many refusals of several, the others are acknowledged before the next try', async () => {
      const refusals = new EventEmitter();
      let refused = 0;
      const reports = reporting(async (batch) => {
        if (!batch.some(isPoisoned)) return accept(batch);
        refused += 1;
        refusals.emit('refused');
        throw new SluiceError('unavailable', 'HTML with 403');
      });
      for (let i = 0; i < 3; i += 1) reports.send(report('poisoned'));
      while (refused < 7) await once(refusals, 'refused');
      // A turn later, so that the failure has been dealt with.
      await new Promise(setImmediate);
      for (let i = 0; i < 5; i += 1) {
        await new Promise<unknown>((heard) => reports.send(report('good'), heard));
      }
      expect(refused).toBe(7);
      expect(reports.unacknowledged).toHaveLength(3);
      reports.giveUp();
      await reports.whenEmpty();
    });

    it('R-HA1: one that is never answered delays no other, and is delivered when it is let through', async () => {
      const second = new Gate();
      const letThrough = new Gate();
      let poisonedTries = 0;
      const reports = reporting(async (batch) => {
        if (!batch.some(isPoisoned)) return accept(batch);
        poisonedTries += 1;
        if (poisonedTries === 1) throw new SluiceError('unavailable', 'HTML with 403');
        second.open();
        await letThrough.passed;
        return accept(batch);
      });
      reports.send(report('poisoned'));
      await second.passed;
      for (let i = 0; i < 5; i += 1) {
        await new Promise<unknown>((heard) => reports.send(report('good'), heard));
      }
      expect(reports.unacknowledged).toHaveLength(1);
      letThrough.open();
      await reports.whenEmpty();
      expect(poisonedTries).toBe(2);
    });

    it('R-HA1: their failures make no call of the others smaller', async () => {
      const taken: number[] = [];
      const isSuspected = new Gate();
      let refused = 0;
      const reports = reporting(async (batch) => {
        if (batch.some(isPoisoned)) {
          refused += 1;
          if (refused === 2) isSuspected.open();
          throw new SluiceError('unavailable', 'HTML with 403');
        }
        taken.push(batch.length);
        return accept(batch);
      });
      reports.send(report('poisoned'));
      await isSuspected.passed;
      for (let i = 0; i < 20; i += 1) reports.send(report('good'));
      while (reports.unacknowledged.length > 1) await new Promise(setImmediate);
      expect(taken).toEqual([20]);
      reports.giveUp();
    });
  });

  it('gives up when told to, and then waits for nothing', async () => {
    const reports: Reports = reporting(async () => {
      reports.giveUp();
      throw new SluiceError('unavailable', 'away');
    });
    await new Promise<unknown>((heard) => reports.send(report('undelivered'), heard));
    await reports.whenEmpty();
  });
});
