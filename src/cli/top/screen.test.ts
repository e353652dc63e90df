import { describe, expect, it } from 'vitest';
import { defaultQueueSettings } from '../../domain/queue-settings.js';
import type { AlertView } from '../../protocol/alerts-api.js';
import type { QueueView } from '../../protocol/queues-api.js';
import type { Attention, Statistics } from '../../protocol/statistics-api.js';
import { drawScreen, type Shown, type View } from './screen.js';
import { sparkline } from './sparkline.js';

const at = new Date('2030-01-31T12:00:00.000Z');

function queue(name: string, waiting: number, live: Partial<QueueView['live']> = {}): QueueView {
  return {
    name,
    settings: defaultQueueSettings,
    version: 1,
    inForce: true,
    live: {
      depth: { high: 0, medium: waiting, low: 0 },
      effectiveDepth: { high: 0, medium: waiting, low: 0 },
      backlog: 0,
      active: null,
      running: 1,
      tokens: {},
      nextTokenInMs: null,
      usage: [],
      recoveryFactor: 1,
      pausedUntil: null,
      pausedWhy: null,
      circuit: 'closed',
      oldestAgeSeconds: waiting === 0 ? null : 5,
      lastMinute: { started: 0, completed: 3, failed: 0 },
      ...live,
    },
  };
}

const statistics: Statistics = {
  queues: {
    high: { depth: 0, oldestAgeSeconds: null },
    medium: { depth: 40, oldestAgeSeconds: 5 },
    low: { depth: 0, oldestAgeSeconds: null },
  },
  running: 3,
  workers: { active: 2, draining: 0, dead: 0, totalCapacity: 100, usedCapacity: 0 },
  age: { p50Seconds: 1, p95Seconds: 4, oldestSeconds: 5 },
  throughput: { completedLastMinute: 3, failedLastMinute: 0, avgTaskDurationSeconds: 1 },
  admission: { active: 40, maxActive: 1_000 },
  recovery: { leasesLapsedLastHour: 0, timeoutsLastHour: 0, reofferedLastHour: 0 },
};

const calm: Attention = {
  queues: { items: [], totalCount: 0 },
  workers: { items: [], totalCount: 0 },
};

function shown(changes: Partial<Shown> = {}): Shown {
  return {
    statistics,
    attention: calm,
    queues: [queue('small', 1), queue('large', 30), queue('middle', 9)],
    hasMoreQueues: false,
    alerts: [],
    series: {
      queue: null,
      from: at,
      to: at,
      stepSeconds: 60,
      times: [at, at],
      values: { completed: [1, 2], failed: [0, 0], wait_p50: [0.5, null] },
    },
    ...changes,
  };
}

function alert(name: string): AlertView {
  return {
    ...{ name, severity: 'critical', state: 'firing', since: at, value: 9, threshold: 1 },
    ...{ forSeconds: 0, off: false, silencedUntil: null, silenceNote: null, labels: {} },
    ...{ summary: 'Work stands still. (9 tasks; fires above 1 task)', runbook: '' },
  };
}

function view(changes: Partial<View> = {}): View {
  return {
    server: 'http://sluice',
    now: at,
    width: 100,
    height: 20,
    order: 'waiting',
    offset: 0,
    trouble: null,
    ...changes,
  };
}

const drawn = (...args: Parameters<typeof drawScreen>): string => drawScreen(...args).join('\n');

describe('drawScreen', () => {
  it('R-OB6: shows what waits and runs, and says that all is well', () => {
    const text = drawn(shown(), view());
    expect(text).toMatch(/^waiting +40 {2}\(high 0, medium 40, low 0\) {2}oldest 5\.0 s$/m);
    expect(text).toMatch(/^running +3 of 100 places {2}workers 2 active$/m);
    expect(text).toMatch(/^wait +p50 500 ms {2}p95 – /m);
    expect(text).toMatch(/^All is well\.$/m);
  });

  it('R-OB6: sorts by what is asked for, and scrolls', () => {
    const names = (text: string) => text.match(/^(small|middle|large)/gm);
    expect(names(drawn(shown(), view()))).toEqual(['large', 'middle', 'small']);
    expect(names(drawn(shown(), view({ order: 'name' })))).toEqual(['large', 'middle', 'small']);
    const short = view({ height: 14, offset: 1 });
    expect(names(drawn(shown(), short))).toEqual(['middle']);
    expect(drawn(shown(), short)).toContain('2 more queues');
  });

  it('R-OB6: names what needs attention in words', () => {
    const until = new Date('2030-01-31T12:05:00.000Z');
    const stopped = queue('gpt', 1, {
      circuit: 'open',
      pausedUntil: until,
      pausedWhy: 'its service answered 503',
    });
    const text = drawn(
      shown({
        attention: { ...calm, queues: { items: [stopped], totalCount: 1_400 } },
        statistics: { ...statistics, workers: { ...statistics.workers, active: 0 } },
      }),
      view(),
    );
    expect(text).toContain('No worker is active, and 40 tasks wait.');
    expect(text).toContain(`gpt: stopped until ${until.toISOString()}: its service answered 503`);
    expect(text).toContain('… and 1,399 more queues');
    expect(text).not.toContain('All is well');
  });

  it('R-OB6: names the alerts that fire, and how many more there are', () => {
    const firing = Array.from({ length: 7 }, (_, index) => alert(`rule_${index}`));
    const text = drawn(shown({ alerts: firing }), view());
    expect(text).toContain('rule_0 (critical): Work stands still. (9 tasks; fires above 1 task)');
    expect(text).toContain('… and 2 more alerts: sluice alerts');
    expect(text).not.toContain('All is well');
  });

  it.each([
    [100, 30],
    [60, 14],
    [20, 5],
    [8, 2],
    [1, 1],
  ])('R-OB6: fits into %i × %i characters', (width, height) => {
    const queues = Array.from({ length: 50 }, (_, index) => queue(`queue-${index}`, index));
    const lines = drawScreen(shown({ queues, hasMoreQueues: true }), view({ width, height }));
    expect(lines).toHaveLength(height);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
  });

  it('R-OB6: says why its numbers are old, and what to do in an empty installation', () => {
    expect(drawn(null, view({ trouble: 'It cannot be reached' }))).toContain(
      'It cannot be reached',
    );
    expect(drawn(shown({ queues: [] }), view())).toContain('Try: sluice submit hello');
  });
});

describe('sparkline', () => {
  it('draws the last values that fit, each by its share of the largest', () => {
    expect(sparkline([9, 0, 1, 2, null], 4)).toBe('▁▅█▁');
    expect(sparkline([0, null], 10)).toBe('▁▁');
    expect(sparkline([1, 2], 0)).toBe('');
  });
});
