import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drawRates } from '../../bench/chart.js';
import { median } from '../../bench/median.js';
import { contenders, orderOf } from '../../bench/run/contenders.js';
import { readFlags, WrongFlag } from '../../bench/run/flags.js';
import { judge } from '../../bench/run/goals.js';
import { measureNames, type Run, type Values } from '../../bench/run/measures.js';
import { ProcessTree } from '../../lab/shared/process-tree.js';
import { grossRegressions, toRecorded } from '../../bench/run/recorded.js';
import {
  composeReport,
  costsGrid,
  goalsGrid,
  peersAhead,
  ratesGrid,
  toMarkdown,
  withMeasured,
} from '../../bench/run/report.js';
import { quantile, ratioOf, spreadOf, summarize } from '../../bench/run/summary.js';

const numbers = fc.array(fc.double({ min: 0.001, max: 1e6, noNaN: true }), { minLength: 1 });

describe('R-LA2: medians and spread', () => {
  it('takes the middle one, or lies between the two in the middle', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([])).toBeNaN();
  });

  it('has as many values on one side of the median as on the other', () => {
    fc.assert(
      fc.property(numbers, (values) => {
        const { median: middle, least, most } = spreadOf(values);
        const below = values.filter((value) => value < middle).length;
        const above = values.filter((value) => value > middle).length;
        expect(Math.max(below, above)).toBeLessThanOrEqual(values.length / 2);
        expect(least <= middle && middle <= most).toBe(true);
      }),
    );
  });

  it('gives a quantile that is one of the values, with no more than its share below', () => {
    fc.assert(
      fc.property(numbers, fc.constantFrom(0.5, 0.9, 0.99), (values, share) => {
        const found = quantile(values, share);
        expect(values).toContain(found);
        expect(values.filter((value) => value < found).length).toBeLessThanOrEqual(
          values.length * share,
        );
      }),
    );
    expect(quantile([1, 2, 3, 4], 0.5)).toBe(2);
    expect(quantile([], 0.5)).toBeNaN();
  });
});

describe('R-LA2: rounds', () => {
  it('runs every contender in every round, each of them first once', () => {
    const firsts = contenders.map((_, round) => orderOf(contenders, round)[0]);
    expect(new Set(firsts).size).toBe(contenders.length);
    for (const round of [0, 1, 7, 8]) {
      expect(orderOf(contenders, round)).toHaveLength(contenders.length);
      expect(new Set(orderOf(contenders, round))).toEqual(new Set(contenders));
    }
  });

  it('compares by round: what slowed a round down slowed both sides', () => {
    const runs = [
      run('sluice-postgres', 0, { process: 40 }),
      run('bullmq', 0, { process: 10 }),
      run('sluice-postgres', 1, { process: 4 }),
      run('bullmq', 1, { process: 1 }),
    ];
    expect(ratioOf(runs, 'process', 'sluice-postgres', 'bullmq')).toEqual({
      median: 4,
      least: 4,
      most: 4,
    });
    expect(ratioOf(runs, 'process', 'sluice-http', 'bullmq')).toBeNull();
  });

  it('judges rates and times the right way round', () => {
    const runs = [
      run('sluice-postgres', 0, { process: 25, startP50: 2, startP99: 1.25, submit: 1 }),
      run('bullmq-durable', 0, { process: 10, startP50: 1, startP99: 1, submit: 2 }),
    ];
    const verdicts = judge(runs).map(({ measure, verdict }) => [measure, verdict]);
    expect(verdicts).toEqual([
      ['process', 'met'],
      ['submit', 'missed'],
      ['startP50', 'missed'],
      ['startP99', 'met'],
    ]);
  });
});

describe('R-LA2: the report', () => {
  const runs = contenders.flatMap(({ name }, place) =>
    [0, 1, 2].map((round) => run(name, round, { process: 1_000 * (place + 1) + round })),
  );
  const report = composeReport(
    {
      measuredAt: '2026-01-01',
      machine: '2 cores',
      versions: { Node: '24.0.0' },
      sizes: { tasks: 20_000, submits: 10_000, samples: 500, warmUp: 2_000 },
      rounds: 3,
    },
    runs,
  );

  it('holds every round, and the summary of each contender', () => {
    expect(report.runs).toBe(runs);
    expect(Object.keys(report.summary)).toEqual(contenders.map(({ name }) => name));
    expect(summarize(runs, 'bullmq').process).toEqual({ median: 1_001, least: 1_000, most: 1_002 });
  });

  it('shows a row for each contender with median and spread, and one for each goal', () => {
    const [head, bullmq] = ratesGrid(report);
    expect(head).toContain('process, tasks/s');
    expect(bullmq).toContain('1,001 (1,000–1,002)');
    expect(ratesGrid(report)).toHaveLength(contenders.length + 1);
    expect(costsGrid(report)).toHaveLength(contenders.length + 1);
    expect(goalsGrid(report)).toHaveLength(report.goals.length + 1);
    expect(report.goals).toHaveLength(8);
  });

  it('says what was wanted and reached of what Postgres alone does, a rate or a time', () => {
    const { goals } = composeReport(report, [
      run('sluice-postgres', 0, { process: 48, startP50: 4 }),
      run('bullmq-durable', 0, { process: 16, startP50: 2 }),
      run('bare-postgres', 0, { process: 64, startP50: 1 }),
    ]);
    const shareOf = (name: string) => goals.find(({ measure }) => measure === name)?.ofLimit;
    expect(shareOf('process')).toEqual({ wanted: 0.625, reached: 0.75 });
    expect(shareOf('startP50')).toEqual({ wanted: 0.5, reached: 0.25 });
    expect(goalsGrid({ ...report, goals })[1]?.slice(-2)).toEqual(['63 %', '75 %']);
  });

  it('leaves the limit out where it was not measured, and never calls it a peer', () => {
    const rounds = [
      run('sluice-postgres', 0, { process: 60 }),
      run('bullmq-durable', 0, { process: 20 }),
      run('bare-postgres', 0, { process: 100 }),
    ];
    expect(peersAhead(composeReport(report, rounds))).toEqual([]);
    const { goals } = composeReport(report, rounds.slice(0, 2));
    expect(goals.map(({ ofLimit }) => ofLimit)).toEqual(goals.map(() => null));
    expect(goalsGrid({ ...report, goals })[1]?.slice(-2)).toEqual(['–', '–']);
  });

  it('names every peer that is ahead, whichever way is better', () => {
    const ahead = composeReport(report, [
      run('sluice-postgres', 0, { process: 10, startP50: 3 }),
      run('bullmq', 0, { process: 20, startP50: 2 }),
      run('pg-boss', 0, { process: 5, startP50: 4 }),
    ]);
    expect(peersAhead(ahead)).toEqual([
      'process: BullMQ 2.00 times',
      'submit to start, p50: BullMQ 1.50 times',
    ]);
    expect(toMarkdown(ahead)).toContain('- process: BullMQ 2.00 times');
  });

  it('says where a machine does not tell what was used', () => {
    const untold = composeReport(report, [run('bullmq', 0, { ownCpu: Number.NaN })]);
    expect(costsGrid(untold)[1]).toContain('–');
  });

  it('replaces what was measured before in the document, and nothing else', () => {
    const document = 'before\n\n<!-- measured -->\n\nold\n\n<!-- /measured -->\n\nafter\n';
    const written = withMeasured(document, toMarkdown(report));
    expect(written).toMatch(/^before\n\n<!-- measured -->\n\nMeasured 2026-01-01/);
    expect(written).toMatch(/rounds\.json\)\.\n\n<!-- \/measured -->\n\nafter\n$/);
    expect(written).not.toContain('old');
    expect(withMeasured(written, 'x')).toBe(withMeasured(document, 'x'));
    expect(() => withMeasured('nothing here', 'x')).toThrow('no <!-- measured -->');
  });

  it('draws every contender, as SVG and as PNG', () => {
    const { svg, png } = drawRates(report);
    for (const { title } of contenders) expect(svg).toContain(title);
    expect(svg).toMatch(/^<svg /);
    expect(png.subarray(1, 4).toString()).toBe('PNG');
    // A page that nobody painted is a few kilobytes.
    expect(png.length).toBeGreaterThan(50_000);
  });
});

describe('R-LA2: the short run', () => {
  const goals = judge([
    run('sluice-postgres', 0, { process: 40, startP50: 1 }),
    run('bullmq-durable', 0, { process: 10, startP50: 1 }),
  ]);

  it('records rates alone', () => {
    expect(toRecorded(goals)).toEqual({
      'process: sluice-postgres / bullmq-durable': 4,
      'submit: sluice-postgres / bullmq-durable': 1,
    });
  });

  it('fails below half of what was recorded, and not before', () => {
    const recorded = (ratio: number) => ({ 'process: sluice-postgres / bullmq-durable': ratio });
    expect(grossRegressions(goals, recorded(8))).toEqual([]);
    expect(grossRegressions(goals, recorded(8.1))).toEqual([
      'process: sluice-postgres / bullmq-durable is 4.00, less than half of 8.10',
    ]);
    expect(grossRegressions(goals, {})).toEqual([]);
  });
});

describe('R-LA2: flags', () => {
  it('runs everything five times unless told otherwise', () => {
    const flags = readFlags([]);
    expect(flags?.rounds).toBe(5);
    expect(flags?.sizes).toEqual({
      tasks: 20_000,
      submits: 10_000,
      samples: 500,
      warmUp: 20_000,
    });
    expect(flags?.chosen).toEqual(contenders);
    expect(readFlags(['--help'])).toBeNull();
  });

  it('takes some contenders, in the order of all', () => {
    const flags = readFlags(['--only', 'sluice-http', '--only', 'bullmq', '--tasks', '500']);
    expect(flags?.chosen.map(({ name }) => name)).toEqual(['bullmq', 'sluice-http']);
    expect(flags?.sizes).toEqual({ tasks: 500, submits: 250, samples: 500, warmUp: 500 });
  });

  it.each([
    [['--only', 'celery'], 'There is no celery'],
    [['--tasks', '0'], '--tasks takes a whole number above 0, not 0'],
    [['--rounds', 'many'], '--rounds takes a whole number above 0, not many'],
    [['--write', '--only', 'bullmq'], '--write is for a whole run'],
  ])('refuses %j', (args, sentence) => {
    expect(() => readFlags(args)).toThrow(WrongFlag);
    expect(() => readFlags(args)).toThrow(sentence);
  });
});

describe('R-LA2: what processes use', () => {
  // Elsewhere nobody tells.
  it.each([process.platform === 'linux' ? process.pid : null, null])('of %s', (pid) => {
    const tree = new ProcessTree(pid);
    const told = [tree.cpuSeconds(), tree.megabytes(), tree.peakMegabytes()];
    expect(told.map((value) => value > 0)).toEqual(told.map(() => pid !== null));
  });
});

function run(contender: string, round: number, values: Partial<Values>): Run {
  const ones = Object.fromEntries(measureNames.map((name) => [name, 1])) as Values;
  return { round, contender, values: { ...ones, ...values }, twice: 0 };
}
