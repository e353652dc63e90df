import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OfferIndex } from './offer-index.js';
import type { Offer } from './offer.js';
import type { Cost, RateLimit } from './queue-settings.js';
import {
  defaultScalingSettings,
  demandOf,
  desiredAfter,
  type Demand,
  type Past,
  type ScalingFacts,
  type ScalingSettings,
} from './scaling.js';
import { scalingText } from './scaling-text.js';
import type { LaneWaiting, QueueRoom } from './work-waiting.js';
import { noWorkers, Workforce, type WorkerGroup } from './workforce.js';

const settings: ScalingSettings = { ...defaultScalingSettings, concurrency: 4, max: 10 };
const anything: Offer = { taskTypes: null, queues: null, capabilities: null };
const open: QueueRoom = { stoppedBy: null, slots: null, buckets: [], averageDurationMs: null };

const due = (count: number, queue = 'q', cost: Cost = {}): LaneWaiting => ({
  lane: { queue, taskType: 'chat', capabilities: [] },
  due: count,
  cost,
});

type TestGroup = WorkerGroup & { readonly offer: Offer };

const group = (workers: number, busy: number, offer: Partial<Offer> = {}): TestGroup => ({
  offer: { taskTypes: null, queues: null, capabilities: [], ...offer },
  workers,
  capacity: workers * settings.concurrency,
  busy,
  free: workers * settings.concurrency - busy,
});

const bucket = (rate: Partial<RateLimit>, tokens: number, name = 'b') => ({
  bucket: name,
  tokens,
  limit: { unit: 'requests', rate: 1, perSeconds: 86_400, burst: null, ...rate },
});

interface TestFacts extends Partial<Pick<ScalingFacts, 'lanes' | 'averageDurationMs'>> {
  readonly groups?: readonly TestGroup[];
  readonly unseen?: WorkerGroup;
}

function workforceOf(groups: readonly TestGroup[], unseen: WorkerGroup): Workforce<WorkerGroup> {
  const index = new OfferIndex();
  for (const [n, { offer }] of groups.entries()) Array.from(index.add(`${n}`, offer));
  return new Workforce(index, new Map(groups.map((one, n) => [`${n}`, one])), unseen);
}

function demand(
  { groups = [], unseen = noWorkers, ...facts }: TestFacts,
  room: Partial<QueueRoom> = {},
  changed: Partial<ScalingSettings> = {},
): Demand {
  const workforce = workforceOf(groups, unseen);
  const whole = { lanes: [], averageDurationMs: null, ...facts, workforce };
  const steps = demandOf(
    { ...whole, roomOf: () => ({ ...open, ...room }) },
    { ...settings, ...changed },
  );
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

describe('R-AD5: how many workers are needed', () => {
  it('as many as the work that is due fills', () => {
    expect(demand({ lanes: [due(9)] })).toMatchObject({ current: 0, needed: 3, waiting: 9 });
    expect(demand({ lanes: [due(9)], groups: [group(2, 8)] }).needed).toBe(5);
    expect(demand({ lanes: [] })).toMatchObject({ current: 0, needed: 0, waiting: 0 });
  });

  it('free slots are filled first, and who is idle altogether is not needed', () => {
    expect(demand({ lanes: [due(3)], groups: [group(1, 1)] }).needed).toBe(1);
    expect(demand({ lanes: [due(4)], groups: [group(1, 1)] }).needed).toBe(2);
    expect(demand({ groups: [group(3, 5)] }).needed).toBe(2);
    expect(demand({ groups: [group(3, 1)] }).needed).toBe(1);
    expect(demand({ groups: [group(3, 0)] }).needed).toBe(0);
  });

  it('who is idle is not needed, however small it is', () => {
    const small = { ...group(2, 0), capacity: 2, busy: 1, free: 1 };
    expect(demand({ groups: [small] }).needed).toBe(1);
    expect(demand({ groups: [{ ...small, busy: 0, free: 2 }] }).needed).toBe(0);
  });

  it.each(['paused', 'circuit_open'] as const)('nobody for a queue that is %s', (stoppedBy) => {
    const { needed, waiting, queues } = demand({ lanes: [due(500)] }, { stoppedBy });
    expect({ needed, waiting }).toEqual({ needed: 0, waiting: 0 });
    expect(queues).toEqual([{ queue: 'q', due: 500, waiting: 0, heldUpBy: stoppedBy }]);
  });

  it('nobody for what waits for tokens, or for a slot of its queue', () => {
    const dry = demand({ lanes: [due(500)] }, { buckets: [bucket({}, 0)] });
    expect(dry).toMatchObject({ needed: 0, queues: [{ due: 500, heldUpBy: 'rate_limit' }] });
    const full = demand({ lanes: [due(500)] }, { slots: 0 });
    expect(full).toMatchObject({ needed: 0, queues: [{ due: 500, heldUpBy: 'max_concurrency' }] });
    expect(demand({ lanes: [due(500)] }, { slots: 5 })).toMatchObject({ needed: 2, waiting: 5 });
  });

  it('what a limit lets start before the next look needs a worker by then', () => {
    const buckets = [bucket({ rate: 1000, perSeconds: 100, burst: 10 }, 0)];
    expect(demand({ lanes: [due(500)] }, { buckets }, { intervalMs: 1_000 }).waiting).toBe(10);
    expect(demand({ lanes: [due(500)] }, { buckets }, { intervalMs: 5_000 }).waiting).toBe(50);
  });

  it('a limit is counted once, however many lanes and queues draw on it', () => {
    const lanes = [due(10, 'one'), due(10, 'two'), due(10, 'three', { tokens: 5 })];
    const tokens = bucket({ unit: 'tokens', burst: 100 }, 17, 'shared tokens');
    const requests = bucket({ burst: 100 }, 12, 'shared');
    expect(demand({ lanes }, { buckets: [requests] })).toMatchObject({
      waiting: 12,
      queues: [{ waiting: 10 }, { waiting: 2 }, { waiting: 0 }],
    });
    expect(demand({ lanes }, { buckets: [tokens] }).queues[2]).toMatchObject({ waiting: 3 });
  });

  it('what costs more than its bucket holds goes when that is full', () => {
    const lanes = [due(10, 'q', { tokens: 50 })];
    const limit = { unit: 'tokens', rate: 1, perSeconds: 86_400, burst: 20 };
    expect(demand({ lanes }, { buckets: [bucket(limit, 19)] }).waiting).toBe(0);
    expect(demand({ lanes }, { buckets: [bucket(limit, 20)] }).waiting).toBe(1);
  });

  it('nobody for what those that are there get done before the next look', () => {
    const room = { averageDurationMs: 50 };
    const facts = { lanes: [due(300)], groups: [group(1, 4)], averageDurationMs: 50 };
    expect(demand(facts, room).needed).toBe(1);
    expect(demand({ ...facts, lanes: [due(600)] }, room).needed).toBe(2);
    // Busy with short tasks is busy: none of them is idle.
    expect(demand({ groups: [group(3, 12)], averageDurationMs: 50 }).needed).toBe(3);
  });

  it('counts only what those that are asked for could do, and who shares in it', () => {
    const gpu = {
      lane: { queue: 'q', taskType: 'train', capabilities: ['gpu'] },
      due: 40,
      cost: {},
    };
    const asked = (offer: Partial<Offer>) => ({ offer: { ...anything, ...offer } });
    expect(demand({ lanes: [gpu] }, {}, asked({ capabilities: [] })).needed).toBe(0);
    expect(demand({ lanes: [gpu] }, {}, asked({ capabilities: ['gpu'] })).needed).toBe(10);
    expect(demand({ lanes: [gpu] }, {}, asked({ taskTypes: ['chat'] })).needed).toBe(0);
    expect(demand({ lanes: [gpu] }, {}, asked({ queues: ['other'] })).needed).toBe(0);
    const groups = [group(2, 0), group(1, 0, { capabilities: ['gpu'] })];
    const facts = { lanes: [gpu], groups };
    expect(demand(facts, {}, asked({ capabilities: ['gpu'] }))).toMatchObject({
      current: 1,
      needed: 10,
    });
    // Free slots of those who can't do it are of no use.
    expect(demand({ lanes: [gpu], groups: [group(2, 0)] }).needed).toBe(12);
  });

  it('R-HA4: workers that are not looked at may do any of it, after all others', () => {
    const unseen = group(2, 0);
    expect(demand({ lanes: [due(9)], groups: [group(1, 0)], unseen })).toMatchObject({
      current: 3,
      needed: 3,
      unseen: 2,
    });
    expect(demand({ lanes: [due(16)], groups: [group(1, 0)], unseen }).needed).toBe(4);
  });

  it('more work never needs fewer workers, and more workers never leave more missing', () => {
    const counts = fc.record({
      waiting: fc.nat(2_000),
      more: fc.nat(500),
      workers: fc.nat(20),
      busyShare: fc.double({ min: 0, max: 1, noNaN: true }),
      averageDurationMs: fc.option(fc.integer({ min: 1, max: 60_000 })),
    });
    fc.assert(
      fc.property(counts, ({ waiting, more, workers, busyShare, averageDurationMs }) => {
        const groups = [group(workers, Math.floor(workers * 4 * busyShare))];
        const of = (count: number) =>
          demand({ lanes: [due(count)], groups, averageDurationMs }, { averageDurationMs }).needed;
        expect(of(waiting + more)).toBeGreaterThanOrEqual(of(waiting));
        const busy = Math.floor(workers * 4 * busyShare);
        expect(of(0)).toBe(Math.ceil(busy / 4));
      }),
    );
  });
});

describe('R-AD5: how many workers are asked for', () => {
  const needing = (needed: number, current = 0): Demand => ({
    current,
    needed,
    waiting: 0,
    freeSlots: 0,
    unseen: 0,
    queues: [],
  });

  /** Looks once a second, from the first second on. */
  function desires(needs: readonly number[], changed: Partial<ScalingSettings> = {}): number[] {
    const whole = { ...settings, quietMs: 3_000, ...changed };
    let past: Past | null = null;
    return needs.map((needed, second) => {
      const after = desiredAfter(past, needing(needed), whole, second * 1000);
      past = after.past;
      return after.desired;
    });
  }

  it('more at once, fewer only after the quiet time', () => {
    expect(desires([0, 5, 2, 0, 0, 0])).toEqual([0, 5, 5, 5, 2, 0]);
    expect(desires([5, 0, 5, 0, 5, 0, 0, 0])).toEqual([5, 5, 5, 5, 5, 5, 5, 0]);
  });

  it('within the bounds', () => {
    expect(desires([0, 50, 3], { min: 2, max: 8 })).toEqual([2, 8, 8]);
  });

  it('who looks for the first time keeps what is there', () => {
    expect(desiredAfter(null, needing(0, 6), settings, 0).desired).toBe(6);
    expect(desiredAfter(null, needing(0, 600), settings, 0).desired).toBe(settings.max);
  });

  it('it is the most that was needed in the quiet time, and remembers no more than it must', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10), { minLength: 1, maxLength: 40 }), (needs) => {
        const window = (at: number) => Math.max(...needs.slice(Math.max(0, at - 2), at + 1));
        expect(desires(needs)).toEqual(needs.map((_, at) => window(at)));
      }),
    );
  });

  it('says why', () => {
    const lacking = demand({ lanes: [due(9)], groups: [group(1, 4)] });
    expect(scalingText(lacking, 4, settings)).toBe(
      '9 tasks wait for a worker; there is 1 worker with 0 free slots.',
    );
    expect(scalingText(lacking, 2, { ...settings, max: 2 })).toMatch(/4 workers .*; 2 is the most/);
    const paused = demand({ lanes: [due(9)] }, { stoppedBy: 'paused' });
    expect(scalingText(paused, 0, settings)).toBe(
      'No task waits for want of workers; there are 0 workers. ' +
        '9 more would not start with more workers: q has a pause.',
    );
    expect(scalingText(paused, 1, { ...settings, min: 1 })).toMatch(/1 is the least/);
    expect(scalingText(paused, 3, settings)).toMatch(/0 would do; .* for 60 s/);
    const unseen = demand({ unseen: group(2, 8) });
    expect(scalingText(unseen, 2, settings)).toMatch(
      /What 2 workers can do was not looked at: together workers name too many/,
    );
  });
});
