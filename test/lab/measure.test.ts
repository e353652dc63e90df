import { describe, expect, it } from 'vitest';

import { deliveryDelays } from '../../lab/limits/claims.js';
import {
  gapsOf,
  jitterOf,
  mostBeyondRate,
  mostInWindow,
  overlapOf,
  shareUsed,
  spreadOf,
} from '../../lab/shared/measure.js';
import { chosenSections, sectionsOf } from '../../lab/shared/results.js';
import { nearestWindow, type TokenCall } from '../../bench/accuracy/scenarios/tokens.js';

describe('what the lab measures with', () => {
  it('knows for how long places stood empty between two', () => {
    const stretches = [
      { from: 0, to: 10 },
      { from: 0, to: 30 },
      { from: 12, to: 20 },
      { from: 25, to: 40 },
      { from: 30, to: 50 },
    ];
    expect(gapsOf(stretches, 2)).toEqual([2, 5, 0]);
  });

  it('counts in half-open windows', () => {
    expect(mostInWindow([0, 10, 20, 1_000], 1_000)).toBe(3);
    expect(mostInWindow([0, 10, 20, 999], 1_000)).toBe(4);
    expect(mostInWindow([], 1_000)).toBe(0);
  });

  it('takes the share that was used from event to event, without what came at the start', () => {
    const burst = [0, 0, 0, 0, 0];
    const steady = Array.from({ length: 51 }, (_, n) => 1_000 + n * 100);
    expect(shareUsed([...burst, ...steady], 1 / 100, 1_000)).toBe(1);
    const missing = steady.filter((_, n) => n !== 25);
    expect(shareUsed([...burst, ...missing], 1 / 100, 1_000)).toBeCloseTo(49 / 50);
  });

  it('finds a second burst, wherever it is', () => {
    const steady = Array.from({ length: 20 }, (_, n) => n * 100);
    expect(mostBeyondRate(steady, 1 / 100, 0)).toBeCloseTo(1);
    expect(mostBeyondRate([0, 0, 0, ...steady], 1 / 100, 0)).toBeCloseTo(4);
    const again = [0, 0, 0, ...steady, 1_900, 1_900, 1_900];
    expect(mostBeyondRate(again, 1 / 100, 0)).toBeCloseTo(7);
    expect(mostBeyondRate(again, 1 / 100, 200)).toBeCloseTo(5);
  });

  it('knows how many were at once, and for how long there were fewer than there may be', () => {
    const stretches = [
      { from: 0, to: 10 },
      { from: 0, to: 10 },
      { from: 10, to: 30 },
    ];
    expect(overlapOf(stretches, 2, 30)).toEqual({
      most: 2,
      shareBelow: 20 / 30,
      average: 40 / 30,
    });
    expect(overlapOf(stretches, 2, 10)).toEqual({ most: 2, shareBelow: 0, average: 2 });
    expect(overlapOf([...stretches, { from: 9, to: 12 }], 2, 30).most).toBe(3);
  });

  it('takes the delay of each call from the claim of the same attempt', () => {
    const claims = [
      { taskId: 'a', queue: 'q', attempt: 1, at: 100 },
      { taskId: 'a', queue: 'q', attempt: 2, at: 500 },
    ];
    const calls = [
      { taskId: 'a', attempt: 2, receivedAt: 530 },
      { taskId: 'a', attempt: 1, receivedAt: 110 },
      { taskId: 'b', attempt: 1, receivedAt: 110 },
    ];
    const delays = deliveryDelays(claims, calls);
    expect(delays).toEqual([30, 10]);
    expect(jitterOf(delays)).toBe(20);
    expect(spreadOf(delays)).toEqual({ least: 10, median: 30, p99: 30, most: 30 });
  });
});

describe('the bound of a limit of tokens', () => {
  const call = (claimedAt: number, estimate: number, used: number, forMs: number): TokenCall => ({
    estimate,
    used,
    claimedAt,
    settledAt: claimedAt + forMs,
  });

  it('is the rate when every estimate is right', () => {
    const calls = [call(0, 50, 50, 10), call(100, 50, 50, 10), call(200, 1, 1, 10)];
    expect(nearestWindow(calls, 1_000, 100, 200)).toEqual({ used: 101, bound: 100 });
  });

  it('grows by what could not be known at the last claim, and by nothing else', () => {
    const late = [call(0, 50, 80, 500), call(100, 50, 50, 10)];
    expect(nearestWindow(late, 1_000, 100, 200)).toEqual({ used: 130, bound: 130 });
    const known = [call(0, 50, 80, 50), call(100, 50, 50, 10)];
    expect(nearestWindow(known, 1_000, 100, 200)).toEqual({ used: 130, bound: 100 });
  });

  it('grows by what came back from before, and by one cost above the capacity', () => {
    const before = [call(0, 100, 20, 500), call(400, 110, 110, 10)];
    expect(nearestWindow(before, 400, 100, 200)).toEqual({ used: 110, bound: 180 });
    expect(nearestWindow([call(0, 150, 150, 10)], 1_000, 100, 120)).toEqual({
      used: 150,
      bound: 130,
    });
  });
});

it('a document keeps what was not measured on this machine, in its place', () => {
  const written = sectionsOf('# Growth\n\npreface\n\n## queues\n\nold\n\n## soak\n\nan hour\n');
  expect([...written.keys()]).toEqual(['queues', 'soak']);
  const measured = new Map([
    ['queues', '## queues\n\nnew'],
    ['backlog', '## backlog\n\nnew'],
  ]);
  expect(chosenSections(['backlog', 'queues', 'workers', 'soak'], measured, written)).toEqual([
    '## backlog\n\nnew',
    '## queues\n\nnew',
    '## soak\n\nan hour',
  ]);
});
