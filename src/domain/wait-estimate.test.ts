import { describe, expect, it } from 'vitest';
import { estimateWaitMs, waitUnder, type WaitFactors } from './wait-estimate.js';

const idle: WaitFactors = {
  position: 0,
  cost: {},
  pausedForMs: 0,
  buckets: [],
  maxConcurrency: null,
  running: 0,
  averageDurationMs: null,
  started: 0,
  busyMs: 60_000,
};

/** 1 token is gained in 1 ms, and 20 fit. */
const fast = { unit: 'requests', rate: 1000, perSeconds: 1, burst: 20 };
const tokens = { unit: 'tokens', rate: 1000, perSeconds: 1, burst: 100 };

describe('R-OB5: the estimate of a wait', () => {
  it.each<[string, Partial<WaitFactors>, number | null]>([
    ['nothing is known', {}, null],
    ['paused until somebody resumes it', { pausedForMs: null, started: 5 }, null],
    ['paused for a while', { pausedForMs: 5_000 }, 5_000],
    ['a token is there', { buckets: [{ tokens: 1, limit: fast }] }, 0],
    ['half a token is there', { buckets: [{ tokens: 0.5, limit: fast }] }, 1],
    [
      'its tokens come after those of 9',
      { position: 9, buckets: [{ tokens: 0, limit: fast }] },
      10,
    ],
    ['some tokens are there', { position: 9, buckets: [{ tokens: 4, limit: fast }] }, 6],
    ['a debt is paid first', { buckets: [{ tokens: -30, limit: fast }] }, 31],
    [
      'by what it costs',
      { position: 2, cost: { tokens: 50 }, buckets: [{ tokens: 100, limit: tokens }] },
      50,
    ],
    ['free of that cost', { position: 2, buckets: [{ tokens: 0, limit: tokens }] }, 0],
    ['free, but there is a debt', { buckets: [{ tokens: -7, limit: tokens }] }, 7],
    [
      'dearer than the bucket: from a full one, and the debts of those before',
      { position: 1, cost: { tokens: 300 }, buckets: [{ tokens: 100, limit: tokens }] },
      300,
    ],
    [
      'the slowest limit counts',
      {
        cost: { tokens: 80 },
        buckets: [
          { tokens: 0, limit: fast },
          { tokens: 0, limit: tokens },
        ],
      },
      80,
    ],
    ['a limit and a pause', { pausedForMs: 9, buckets: [{ tokens: 0, limit: fast }] }, 9],
    ['slots are free', { maxConcurrency: 5, running: 4, averageDurationMs: 1_000 }, 0],
    [
      'slots come free one by one',
      { position: 3, maxConcurrency: 5, running: 5, averageDurationMs: 1_000 },
      800,
    ],
    ['nobody knows how long they run', { maxConcurrency: 1, running: 1 }, null],
    ['by the starts of a busy minute', { position: 10, started: 20 }, 30_000],
    ['by the starts since tasks wait', { position: 10, started: 20, busyMs: 2_000 }, 1_000],
    ['of the last minute at most', { position: 10, started: 20, busyMs: 600_000 }, 30_000],
    [
      'the default never grants more than its rate',
      {
        position: 499,
        buckets: [
          { tokens: 3, limit: { unit: 'requests', rate: 500, perSeconds: 60, burst: null } },
        ],
      },
      Math.ceil((497 / (500 * 0.996)) * 60_000),
    ],
  ])('%s', (_, factors, expected) => {
    expect(estimateWaitMs({ ...idle, ...factors })).toBe(expected);
  });
});

describe('R-OB5: an estimate under what is in the way', () => {
  const nowMs = 1_000_000;
  const inWay = (kind: string, afterMs: number | null = null) => ({
    kind,
    untilMs: afterMs === null ? null : nowMs + afterMs,
  });

  it.each([
    ['nothing is in the way', 500, [], 500],
    ['it is unknown', null, [], null],
    ['a limit ends later', 500, [inWay('rate_limit', 2_000)], 2_000],
    ['a limit ends sooner', 500, [inWay('rate_limit', 100)], 500],
    ['it is scheduled', null, [inWay('scheduled', 60_000)], 60_000],
    [
      'it is scheduled, and nobody can do it',
      null,
      [inWay('scheduled', 60_000), inWay('no_worker')],
      null,
    ],
    ['nobody can do it', 0, [inWay('no_worker')], null],
    ['its workflow is halted', null, [inWay('workflow')], null],
    ['it is paused for good', 0, [inWay('paused')], null],
    ['workers are full, and no task ended yet', 0, [inWay('workers_busy')], null],
    ['workers are full', 700, [inWay('workers_busy')], 700],
    ['workers are suspended', 0, [inWay('workers_busy', 900)], 900],
    ['it is only behind others', 300, [inWay('behind')], 300],
  ] as const)('when %s', (_when, estimateMs, obstacles, waitMs) => {
    expect(waitUnder(estimateMs, obstacles, nowMs)).toBe(waitMs);
  });
});
