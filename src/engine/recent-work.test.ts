import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';

import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import { RecentWork } from './recent-work.js';

function attemptOf(workerId: WorkerId) {
  const lane = { queue: 'default', taskType: 'noop', capabilities: [] };
  return {
    lane,
    priority: 'medium',
    cost: {},
    workerId,
    attempt: 1,
    trace: null,
    startedAtMs: 0,
  } as const;
}

it('R-WO9: an attempt is known to the worker that claimed it, and not to one that took it over', () => {
  const recent = new RecentWork();
  const [worker, again] = [randomUUID() as WorkerId, randomUUID() as WorkerId];
  const [kept, adopted] = [randomUUID() as Lease, randomUUID() as Lease];
  recent.claimed(kept, attemptOf(worker));
  recent.claimed(adopted, attemptOf(worker));
  expect(recent.takeAttempt(kept, worker)).toEqual(attemptOf(worker));
  expect(recent.takeAttempt(kept, worker)).toBeNull();
  expect(recent.takeAttempt(adopted, again)).toBeNull();
});

it('R-LA3: as much as there is room for is kept, and pushes nothing out', () => {
  const recent = new RecentWork();
  const add = (count: number, bytes: number) =>
    Array.from({ length: count }, () => {
      const taskId = randomUUID() as TaskId;
      recent.noteTask(taskId, knownTask('x'.repeat(bytes)));
      return taskId;
    });
  const first = add(1, 10);
  const bytes = recent.roomForEach(3_000);
  expect(bytes).toBeGreaterThan(1_000);
  const fed = add(3_000, bytes);
  expect(recent.roomForEach(1)).toBeLessThan(3_000);
  expect(recent.roomForEach(1_000)).toBe(0);
  const kept = [...first, ...fed].filter((taskId) => recent.takeTask(taskId) !== null);
  expect(kept).toHaveLength(3_001);
});

/** A feed of a thousand small ones, each claimed here or elsewhere. False: they were not read with what they are. */
function fedTo(recent: RecentWork, isClaimedHere: (index: number) => boolean): boolean {
  if (recent.sharedRoomForEach(1_000) === 0) return false;
  for (let index = 0; index < 1_000; index += 1) {
    const taskId = randomUUID() as TaskId;
    recent.noteTask(taskId, knownTask('x'.repeat(100)));
    if (isClaimedHere(index)) recent.takeTask(taskId);
  }
  return true;
}

it('R-CH8: what others may claim is read as long as enough of it is claimed here', () => {
  const recent = new RecentWork();
  const feed = (isClaimedHere: (index: number) => boolean, feeds = 60) =>
    Array.from({ length: feeds }, () => fedTo(recent, isClaimedHere)).filter(Boolean).length;
  expect(feed(() => true)).toBe(60);
  expect(feed((index) => index % 2 === 0)).toBe(60);
  // Three others take most of it: it is found out, and then tried now and then.
  feed((index) => index % 4 === 0);
  expect(feed((index) => index % 4 === 0)).toBe(3);
  // They left.
  feed(() => true, 600);
  expect(feed(() => true)).toBe(60);
});

function knownTask(parametersJson: string) {
  const kind = { queue: 'default', taskType: 'noop', priority: 'medium' } as const;
  return { ...kind, parametersJson, timeoutSeconds: 1, trace: null, cost: {}, eligibleAtMs: 0 };
}
