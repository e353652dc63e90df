import fc from 'fast-check';
import { expect } from 'vitest';
import { firstIdAt, type TaskId } from '../domain/ids.js';
import { capabilitySet, laneKey } from '../domain/lane.js';
import { priorities } from '../domain/priority.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import { ReferenceReadyQueue } from './reference-ready-queue.contract.js';
import type { ReadyQueueUnderTest } from './ready-queue.contract.js';
import type { ReadyQueue, TakeAnswer, Wake } from './ready-queue.js';

const queueNames = ['a', 'b', 'c'];
const taskTypes = ['x', 'y'];
const capabilities = ['gpu', 'large'];
const taskIds = Array.from({ length: 40 }, (_, index) => firstIdAt(index + 1));

const someTaskIds = fc.array(fc.constantFrom(...taskIds), { maxLength: 6 });
const lane = fc.record({
  queue: fc.constantFrom(...queueNames),
  taskType: fc.constantFrom(...taskTypes),
  capabilities: fc.subarray(capabilities).map(capabilitySet),
});
const priority = fc.constantFrom(...priorities);
const threshold = fc.option(fc.nat(60));

const operation = fc.oneof(
  {
    weight: 40,
    arbitrary: fc.record({
      kind: fc.constant('offer' as const),
      offers: fc.array(
        fc.record({ taskId: fc.constantFrom(...taskIds), lane, priority, ageMs: fc.nat(80) }),
        { maxLength: 8 },
      ),
    }),
  },
  {
    weight: 50,
    arbitrary: fc.record({
      kind: fc.constant('take' as const),
      request: fc.record({
        taskTypes: fc.option(fc.subarray(taskTypes)),
        capabilities: fc.subarray(capabilities),
        queues: fc.option(fc.subarray([...queueNames, 'unknown']), { freq: 2 }),
        count: fc.integer({ min: 1, max: 5 }),
      }),
    }),
  },
  {
    weight: 30,
    arbitrary: fc.record({
      kind: fc.constantFrom('confirm', 'refund', 'finish', 'remove', 'missing'),
      taskIds: someTaskIds,
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({
      kind: fc.constant('configure' as const),
      name: fc.constantFrom(...queueNames),
      versionsBack: fc.nat(4),
      maxConcurrency: fc.option(fc.nat(3)),
      maxReady: fc.constantFrom(0, 1, 2, 10_000),
      paused: fc.boolean(),
      pausedInMs: fc.option(fc.integer({ min: -20, max: 60 })),
      ageing: fc.record({
        lowToMediumMs: threshold,
        lowToHighMs: threshold,
        mediumToHighMs: threshold,
      }),
    }),
  },
  { weight: 30, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(40) }) },
  {
    weight: 20,
    arbitrary: fc.record({
      kind: fc.constant('position' as const),
      taskId: fc.constantFrom(...taskIds),
      limit: fc.integer({ min: 1, max: 12 }),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('live' as const),
      queue: fc.constantFrom(...queueNames),
    }),
  },
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('room' as const), lane, priority }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('restore' as const),
      running: fc.array(
        fc.record({
          taskId: fc.constantFrom(...taskIds),
          queue: fc.constantFrom(...queueNames),
        }),
        { maxLength: 4 },
      ),
    }),
  },
);

type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

/**
 * Feeds the same random operations to a ready queue and to one that sorts everything each time,
 * and compares every answer and every wake-up. The clock must stand still unless it is advanced.
 */
export async function agreeOnRandomHistories(
  make: () => Promise<ReadyQueueUnderTest>,
  numRuns: number,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 80, size: 'max' }), async (operations) => {
      const subject = await make();
      const startMs = await subject.nowMs();
      const reference = { nowMs: startMs };
      const model = new ReferenceReadyQueue(() => reference.nowMs);
      const seen = recordWakes(subject.queue);
      const expected = recordWakes(model);
      for (const [index, step] of [restored, ...operations].entries()) {
        if (step.kind === 'advance') {
          await subject.advance(step.ms);
          reference.nowMs += step.ms;
          continue;
        }
        const answer = await perform(step, subject.queue, index, reference.nowMs);
        expect(answer).toEqual(await perform(step, model, index, reference.nowMs));
        expect(inOrder(seen.splice(0))).toEqual(inOrder(expected.splice(0)));
      }
      await subject.queue.close();
    }),
    { numRuns },
  );
}

const restored: Operation = { kind: 'restore', running: [] };

/** Which of several queues is told first makes no difference. */
function inOrder(wakes: readonly Wake[]): string[] {
  return wakes.map((wake) => JSON.stringify(wake)).sort();
}

function recordWakes(queue: ReadyQueue): Wake[] {
  const wakes: Wake[] = [];
  queue.onWake(({ lanes, count }) => {
    const sorted = [...lanes].sort((a, b) => (laneKey(a) < laneKey(b) ? -1 : 1));
    wakes.push({ lanes: sorted, count });
  });
  return wakes;
}

async function perform(
  step: Exclude<Operation, { kind: 'advance' }>,
  queue: ReadyQueue,
  index: number,
  nowMs: number,
): Promise<unknown> {
  switch (step.kind) {
    case 'offer':
      return queue.offer(
        // Among those of one age the sequence decides: it must not repeat itself.
        step.offers.map((offer, place) => ({
          ...offer,
          eligibleAtMs: nowMs - offer.ageMs,
          seq: index * 100 + place,
          cost: {},
        })),
      );
    case 'take':
      return rememberGrants(queue, await queue.take(step.request));
    case 'finish':
      return queue.finish(step.taskIds.map(finished));
    case 'confirm':
    case 'refund':
      return queue[step.kind](step.taskIds.map((taskId) => lastGrant(queue, taskId)));
    case 'remove':
    case 'missing':
      return queue[step.kind](step.taskIds);
    case 'configure': {
      const { name, versionsBack, pausedInMs, maxConcurrency, maxReady, paused, ageing } = step;
      const pausedUntil = pausedInMs === null ? null : new Date(nowMs + pausedInMs);
      const version = index - versionsBack;
      const changed = { maxConcurrency, maxReady, paused, pausedUntil, ageing };
      return queue.configure([
        { name, version, settings: { ...defaultQueueSettings, ...changed } },
      ]);
    }
    case 'position':
      return queue.position(step.taskId, step.limit);
    case 'live':
      return queue.live(step.queue);
    case 'room':
      return queue.room([step]);
    case 'restore':
      return queue.restore({ queues: [], running: step.running });
  }
}

/** By queue: a grant is its own matter, so answers are compared without it. */
const grants = new WeakMap<ReadyQueue, Map<TaskId, string>>();

function rememberGrants(queue: ReadyQueue, answer: TakeAnswer): unknown {
  if (answer.kind !== 'taken') return answer;
  const known = grants.get(queue) ?? new Map<TaskId, string>();
  grants.set(queue, known);
  const entries = answer.entries.map(({ grant, ...entry }) => {
    known.set(entry.taskId, grant);
    return entry;
  });
  return { ...answer, entries };
}

/** Also of a taking that is long over: the task may wait, run or be taken again. */
function lastGrant(queue: ReadyQueue, taskId: TaskId) {
  return { taskId, grant: grants.get(queue)?.get(taskId) ?? 'none' };
}

function finished(taskId: TaskId) {
  return { taskId, queue: 'a', reserved: {}, usage: null };
}
