import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drawArrivals } from '../../lab/case-study/arrivals.js';
import { planBatches, publishedShape } from '../../lab/case-study/batch-plan.js';
import { drawAll } from '../../lab/case-study/documents.js';
import { KeptReports } from '../../lab/case-study/kept-reports.js';
import { answersPerSecond, backlogOf, measure } from '../../lab/case-study/measures.js';
import {
  compareGrid,
  seedReport,
  toMarkdown,
  type ScenarioReport,
} from '../../lab/case-study/report.js';
import { batchCapacityPerSecond, simulateBatch } from '../../lab/case-study/simulate-batch.js';
import { simulateSlots } from '../../lab/case-study/simulate-slots.js';
import { atOnce, drawWork, models, type Arrival, type Ran } from '../../lab/case-study/work.js';

const seeds = fc.integer({ min: 1, max: 1_000_000 });
const arrivalLists = fc
  .array(
    fc.record({
      gapMs: fc.integer({ max: 3_000, min: 0 }),
      ms: fc.integer({ max: 9_000, min: 1 }),
    }),
    {
      minLength: 1,
      maxLength: 60,
    },
  )
  .map((list) => {
    let arrivedMs = 0;
    return list.map(({ gapMs, ms }, task) => arrival(task, ms, (arrivedMs += gapMs)));
  });

describe('R-LA1: the work', () => {
  it('is 1,000 tasks over 10 models, of which 50 take 20 to 40 s and the others 1 to 5 s', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const work = drawWork(seed, 1_000);
        const isLong = ({ ms }: { ms: number }) => ms >= 20_000 && ms <= 40_000;
        const isShort = ({ ms }: { ms: number }) => ms >= 1_000 && ms <= 5_000;
        expect(work.filter(isLong)).toHaveLength(50);
        expect(work.filter(isShort)).toHaveLength(950);
        for (const model of models) {
          expect(work.filter((one) => one.model === model)).toHaveLength(100);
        }
      }),
      { numRuns: 20 },
    );
  });

  it('is the same for the same seed, and another for another', () => {
    expect(drawWork(1, 100)).toEqual(drawWork(1, 100));
    expect(drawWork(1, 100)).not.toEqual(drawWork(2, 100));
  });

  it('arrives as often as it should, in order', () => {
    const arrivals = drawArrivals(3, [
      { seconds: 300, perSecond: 10 },
      { seconds: 300, perSecond: 20 },
    ]);
    const times = arrivals.map(({ arrivedMs }) => arrivedMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    const inFirst = times.filter((time) => time < 300_000).length;
    expect(Math.abs(inFirst - 3_000)).toBeLessThan(300);
    expect(Math.abs(times.length - inFirst - 6_000)).toBeLessThan(400);
  });
});

describe('R-LA1: the batch system, simulated', () => {
  it('cuts 1,000 tasks into 20 parts of five sub-batches of 10, in order', () => {
    const plan = planBatches(drawWork(1, 1_000), publishedShape);
    expect(plan.map((part) => part.map((batch) => batch.length))).toEqual(
      Array.from({ length: 20 }, () => [10, 10, 10, 10, 10]),
    );
    expect(plan.flat(2).map(({ task }) => task)).toEqual(drawWork(1, 1_000).map((one) => one.task));
  });

  it('answers a sub-batch when its slowest member is done, and only then begins the next', () => {
    const arrivals = [3, 1, 2, 5].map((ms, task) => arrival(task, ms));
    expect(simulateBatch(arrivals, { parts: 1, size: 2 }).map(timesOf)).toEqual([
      { startedMs: 0, endedMs: 3, answeredMs: 3 },
      { startedMs: 0, endedMs: 1, answeredMs: 3 },
      { startedMs: 3, endedMs: 5, answeredMs: 8 },
      { startedMs: 3, endedMs: 8, answeredMs: 8 },
    ]);
  });

  it('leaves what arrives meanwhile until the whole round is answered', () => {
    const arrivals = [arrival(0, 10), arrival(1, 4, 2), arrival(2, 1, 30)];
    expect(simulateBatch(arrivals, { parts: 2, size: 1 }).map(timesOf)).toEqual([
      { startedMs: 0, endedMs: 10, answeredMs: 10 },
      { startedMs: 10, endedMs: 14, answeredMs: 14 },
      { startedMs: 30, endedMs: 31, answeredMs: 31 },
    ]);
  });

  it('runs each task once, none before it came, never more at once than it has places', () => {
    const shapes = fc.record({
      parts: fc.integer({ min: 1, max: 5 }),
      size: fc.integer({ min: 1, max: 4 }),
    });
    fc.assert(
      fc.property(arrivalLists, shapes, (arrivals, shape) => {
        const rans = simulateBatch(arrivals, shape);
        expectSound(arrivals, rans);
        expect(mostAtOnce(rans)).toBeLessThanOrEqual(shape.parts * shape.size);
      }),
    );
  });

  it('can do no more than its capacity, and most of that in one long round', () => {
    const work = drawWork(1, 20_000);
    const capacity = batchCapacityPerSecond(work, publishedShape);
    const { perSecond } = measure(simulateBatch(atOnce(work), publishedShape));
    expect(perSecond / capacity).toBeGreaterThan(0.7);
    expect(perSecond).toBeLessThanOrEqual(capacity);
  });
});

describe('R-LA1: the ideal', () => {
  it('begins the next one whenever a slot is free', () => {
    const arrivals = [5, 1, 2, 4].map((ms, task) => arrival(task, ms));
    expect(simulateSlots(arrivals, 2).map(timesOf)).toEqual([
      { startedMs: 0, endedMs: 5, answeredMs: 5 },
      { startedMs: 0, endedMs: 1, answeredMs: 1 },
      { startedMs: 1, endedMs: 3, answeredMs: 3 },
      { startedMs: 3, endedMs: 7, answeredMs: 7 },
    ]);
  });

  it('keeps the order, never has more at once than slots, and none waits while one is free', () => {
    fc.assert(
      fc.property(arrivalLists, fc.integer({ min: 1, max: 6 }), (arrivals, slots) => {
        const rans = simulateSlots(arrivals, slots);
        expectSound(arrivals, rans);
        const starts = rans.map(({ startedMs }) => startedMs);
        expect(starts).toEqual(starts.toSorted((a, b) => a - b));
        expect(mostAtOnce(rans)).toBeLessThanOrEqual(slots);
        for (const { arrivedMs, startedMs } of rans) {
          const busyBefore = rans.filter(
            (other) => other.startedMs < startedMs && other.endedMs >= startedMs,
          );
          if (startedMs > arrivedMs) expect(busyBefore.length).toBeGreaterThanOrEqual(slots);
        }
      }),
    );
  });

  it('takes less than half the time of the batch system, whatever the seed', () => {
    const ratios = Array.from({ length: 20 }, (_, n) => {
      const arrivals = atOnce(drawWork(n + 1, 1_000));
      const batch = measure(simulateBatch(arrivals, publishedShape));
      return batch.durationMs / measure(simulateSlots(arrivals, 400)).durationMs;
    });
    expect(Math.min(...ratios)).toBeGreaterThan(2);
    expect(Math.max(...ratios)).toBeLessThan(5);
  });
});

describe('R-LA1: what is told of a run', () => {
  const rans = Array.from({ length: 100 }, (_, task): Ran => {
    const answeredMs = (task + 1) * 1_000;
    const model = models[task % 10] ?? '';
    return { task, model, arrivedMs: 0, startedMs: task * 10, endedMs: answeredMs, answeredMs };
  });

  it('tells duration, throughput and waits', () => {
    expect(measure(rans)).toEqual({
      tasks: 100,
      durationMs: 100_000,
      perSecond: 1,
      sustainedPerSecond: 1,
      waitMs: { p50: 500, p95: 950, p99: 990 },
      answerMs: { p50: 51_000, p95: 96_000, p99: 100_000 },
      swing: { least: 1, most: 1, deviation: 0 },
    });
  });

  it('tells how far the throughput swings', () => {
    // Ten answers at once, every four seconds.
    const bursts = rans.map((ran, n) => ({ ...ran, answeredMs: Math.floor(n / 10) * 4_000 }));
    const { swing } = measure(bursts);
    expect(swing).toMatchObject({ least: 0, most: 5 });
    expect(swing.deviation).toBeGreaterThan(0.9);
  });

  it('counts every answer in one piece of the time, and every task in the backlog once', () => {
    const perPiece = answersPerSecond(rans, 7_000);
    expect(perPiece.reduce((sum, rate) => sum + rate * 7, 0)).toBeCloseTo(100);
    const backlog = backlogOf(rans, 10_000);
    expect(backlog.map(({ count }) => count)).toEqual([100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 0]);
    expect(backlog.at(-1)).toEqual({ atMs: 100_000, count: 0 });
  });
});

describe('R-LA1: the report', () => {
  const batch = report('batch', [1, 2], 'batch', (seed) => {
    return simulateBatch(atOnce(drawWork(seed, 1_000)), publishedShape);
  });
  const sluice = report('sluice', [1], 'sluice', (seed) => {
    return simulateSlots(atOnce(drawWork(seed, 1_000)), 400);
  });
  const spiral = report('spiral', [1], 'spiral: batch', (seed) => {
    return simulateBatch(drawArrivals(seed, [{ seconds: 60, perSecond: 8 }]), publishedShape);
  });

  it('shows the runs beside what was published, with the spread over seeds', () => {
    const [head, duration, rate] = compareGrid([batch, sluice]);
    expect(head?.slice(0, 5)).toEqual(['', 'batch', 'published', 'Sluice 8 × 50', 'published']);
    expect(duration).toEqual([
      'duration',
      '134.0 s (122.7 s to 134.0 s)',
      '179 s',
      '43.4 s',
      '46 s',
      '',
      '',
    ]);
    expect(rate?.[2]).toBe('5.6');
    expect(rate?.[4]).toBe('23.3');
  });

  it('says with which command each was measured, and shows the charts that there are', () => {
    const markdown = toMarkdown([batch, sluice]);
    expect(markdown).toContain('with `sluice lab --only batch`');
    expect(markdown).toContain('(lab/throughput.svg)');
    expect(markdown).not.toContain('(lab/spiral.svg)');
  });

  it('draws as SVG and as PNG', () => {
    const charts = drawAll([batch, sluice, { ...spiral, runs: twice(spiral) }]);
    expect(Object.keys(charts)).toEqual(['throughput', 'waterfall', 'spiral']);
    for (const { svg, png } of Object.values(charts)) {
      expect(svg).toMatch(/^<svg /);
      expect(png.subarray(1, 4).toString()).toBe('PNG');
      // A page that nobody painted is a few kilobytes.
      expect(png.length).toBeGreaterThan(30_000);
    }
    expect(charts.throughput?.svg).toContain('published: 179 s');
    expect(charts.waterfall?.svg).toContain('Batch, 134 s');
  });

  it('keeps what was measured last of every scenario, in the order of all', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-lab-'));
    try {
      const kept = new KeptReports(1, ['batch', 'sluice'], folder);
      kept.keep(sluice);
      kept.keep(batch);
      kept.keep({ ...sluice, measuredAt: '2026-02-02' });
      const all = kept.all().map(({ name, measuredAt }) => [name, measuredAt]);
      expect(all).toEqual([
        ['batch', '2026-01-01'],
        ['sluice', '2026-02-02'],
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

function report(
  name: string,
  seeds: readonly number[],
  title: string,
  simulate: (seed: number) => readonly Ran[],
): ScenarioReport {
  return {
    name,
    about: `how ${name} went`,
    measuredAt: '2026-01-01',
    machine: '2 cores',
    command: `sluice lab --only ${name}`,
    timeScale: 1,
    seeds: seeds.map((seed) => seedReport(seed, [], [{ title, rans: simulate(seed) }])),
    runs: { [title]: simulate(seeds[0] ?? 1) },
  };
}

function twice({ runs }: ScenarioReport): ScenarioReport['runs'] {
  return { ...runs, 'spiral: sluice': runs['spiral: batch'] ?? [] };
}

function arrival(task: number, ms: number, arrivedMs = 0): Arrival {
  return { task, model: 'model-0', ms, arrivedMs };
}

function timesOf({ startedMs, endedMs, answeredMs }: Ran) {
  return { startedMs, endedMs, answeredMs };
}

function expectSound(arrivals: readonly Arrival[], rans: readonly Ran[]): void {
  expect(rans.map(({ task }) => task)).toEqual(arrivals.map(({ task }) => task));
  for (const [index, ran] of rans.entries()) {
    expect(ran.startedMs).toBeGreaterThanOrEqual(ran.arrivedMs);
    expect(ran.endedMs - ran.startedMs).toBe(arrivals[index]?.ms);
    expect(ran.answeredMs).toBeGreaterThanOrEqual(ran.endedMs);
  }
}

function mostAtOnce(rans: readonly Ran[]): number {
  const steps = rans
    .flatMap(({ startedMs, endedMs }) => [
      { at: startedMs, step: 1 },
      { at: endedMs, step: -1 },
    ])
    .sort((a, b) => a.at - b.at || a.step - b.step);
  let now = 0;
  return Math.max(...steps.map(({ step }) => (now += step)));
}
