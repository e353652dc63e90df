import { describe, expect, it } from 'vitest';
import { averageCost, forecastOf, type ForecastFacts, type NextTask } from './forecast.js';
import { noAgeing } from './priority.js';

const calm: ForecastFacts['factors'] = {
  cost: {},
  pausedForMs: 0,
  buckets: [],
  maxConcurrency: null,
  running: 0,
  averageDurationMs: null,
  started: 0,
  busyMs: 1_000,
};

interface Changed extends Partial<Omit<ForecastFacts, 'factors'>> {
  readonly factors?: Partial<ForecastFacts['factors']>;
}

function forecast({ factors, ...facts }: Changed) {
  return forecastOf({
    waiting: 100,
    inflowPerMs: 0,
    hasWorker: true,
    workerSlots: null,
    next: [],
    ageing: noAgeing,
    ...facts,
    factors: { ...calm, ...factors },
  });
}

/** 1 token is gained in 100 ms, and none is there. */
const tenASecond = {
  tokens: 0,
  limit: { unit: 'requests', rate: 10, perSeconds: 1, burst: 10 },
};
const perMinute = (count: number) => count / 60_000;

describe('R-AD6: when a queue is empty', () => {
  it.each<[string, Changed, Partial<ReturnType<typeof forecastOf>>]>([
    ['nothing waits', { waiting: 0 }, { emptyInMs: 0, emptyInMsWithInflow: 0, standstill: null }],
    ['nothing is known', {}, { emptyInMs: null, standstill: 'unknown', drainPerMinute: null }],
    [
      'a limit decides',
      { factors: { buckets: [tenASecond] } },
      { emptyInMs: 10_000, drainPerMinute: 600, pace: 'rate_limit' },
    ],
    [
      'slots decide',
      { factors: { maxConcurrency: 5, running: 5, averageDurationMs: 1_000 } },
      { emptyInMs: 20_000, drainPerMinute: 300, pace: 'max_concurrency' },
    ],
    [
      'there are fewer workers than slots',
      { workerSlots: 2, factors: { maxConcurrency: 5, running: 2, averageDurationMs: 1_000 } },
      { emptyInMs: 50_000, drainPerMinute: 120, pace: 'workers' },
    ],
    [
      'only the last minute tells',
      { factors: { started: 60, busyMs: 60_000 } },
      { emptyInMs: 99_000, drainPerMinute: 60, pace: 'recent_rate' },
    ],
    [
      'half as many come as go',
      { inflowPerMs: perMinute(300), factors: { buckets: [tenASecond] } },
      { emptyInMs: 10_000, emptyInMsWithInflow: 20_000, inflowPerMinute: 300 },
    ],
    [
      'as many come as go',
      { inflowPerMs: perMinute(600), factors: { buckets: [tenASecond] } },
      { emptyInMs: 10_000, emptyInMsWithInflow: null, standstill: null },
    ],
    [
      'a pause ends: its buckets are full then, and tasks came meanwhile',
      {
        inflowPerMs: perMinute(60),
        factors: { pausedForMs: 60_000, buckets: [tenASecond] },
      },
      { emptyInMs: 69_000, emptyInMsWithInflow: 60_000 + Math.ceil(15_000 / 0.9) },
    ],
    [
      'a pause has no end',
      { factors: { pausedForMs: null, started: 5 } },
      { emptyInMs: null, standstill: 'paused' },
    ],
    [
      'no worker can do it',
      { hasWorker: false, factors: { buckets: [tenASecond] } },
      { emptyInMs: null, standstill: 'no_worker', pace: null, drainPerMinute: null },
    ],
    [
      'tasks might start, and none did for a minute',
      { factors: { busyMs: 90_000, buckets: [{ ...tenASecond, tokens: 5 }] } },
      { emptyInMs: null, standstill: 'nothing_starts' },
    ],
    [
      'none started for a minute since there is a debt',
      { waiting: 1, factors: { busyMs: 90_000, buckets: [{ ...tenASecond, tokens: -99 }] } },
      { emptyInMs: 10_000, standstill: null },
    ],
  ])('%s', (_, facts, expected) => {
    const found = forecast(facts);
    const rounded = {
      ...found,
      emptyInMsWithInflow:
        found.emptyInMsWithInflow === null ? null : Math.ceil(found.emptyInMsWithInflow),
    };
    expect(rounded).toMatchObject(expected);
  });
});

describe('R-AD6: which deadlines will be missed', () => {
  const task = (
    seq: number,
    expiresInMs: number | null,
    change: Partial<NextTask> = {},
  ): NextTask => {
    return { priority: 'medium', ageMs: 0, seq, cost: {}, expiresInMs, ...change };
  };
  const missedOf = (next: readonly NextTask[], change: Changed = {}) =>
    forecast({ next, ...change, factors: { buckets: [tenASecond], ...change.factors } }).deadlines;

  it('those of tasks that start later, by their place in line', () => {
    const next = [task(3, 250), task(1, 150), task(2, null), task(4, 399)];
    // They start after 100, 200, 300 and 400 ms.
    expect(missedOf(next)).toEqual({
      lookedAt: 4,
      withDeadline: 3,
      missed: 1,
      firstMissedInMs: 250,
    });
  });

  it('a task that misses its own lets the others come sooner', () => {
    expect(missedOf([task(1, 50), task(2, 100)]).missed).toBe(1);
  });

  it('the more urgent come first, also those that became it', () => {
    const ageing = { ...noAgeing, lowToHighMs: 1_000 };
    const aged = task(9, 150, { priority: 'low', ageMs: 2_000 });
    const next = [task(1, 250, { priority: 'medium' }), aged];
    expect(missedOf(next, { ageing }).missed).toBe(0);
    expect(
      missedOf([...next, task(0, 150, { priority: 'high', ageMs: 1 })], { ageing }).missed,
    ).toBe(1);
  });

  it('all of them while nothing starts, and nobody knows while nothing is known', () => {
    const next = [task(1, 70_000), task(2, -5), task(3, null)];
    const factors = { pausedForMs: null };
    expect(missedOf(next, { factors })).toMatchObject({ missed: 2, firstMissedInMs: 0 });
    expect(missedOf(next, { factors: { buckets: [] } })).toMatchObject({
      missed: null,
      firstMissedInMs: null,
    });
  });
});

it('costs are averaged by unit', () => {
  const costs = [{ tokens: 10 }, { tokens: 20, images: 2 }].map((cost) => ({ cost }));
  expect(averageCost(costs)).toEqual({ tokens: 15, images: 1 });
  expect(averageCost([])).toEqual({});
});
