import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { alertNames, ruleOf } from './rules.js';
import { emptySnapshot, type AlertSnapshot } from './snapshot.js';
import {
  defaultAlertSettings,
  maxActiveLabels,
  stepAlert,
  type ActiveAlert,
  type AlertSettings,
} from './state.js';

const rule = ruleOf('total_depth');
const deep: AlertSnapshot = { ...emptySnapshot, waiting: 50_001 };
const shallow: AlertSnapshot = { ...emptySnapshot, waiting: 50_000 };

/** One alert over time: what it did at each step. */
class Watched {
  active: ActiveAlert[] = [];
  readonly told: string[] = [];
  readonly events: string[] = [];

  step(snapshot: AlertSnapshot, atSeconds: number, settings: Partial<AlertSettings> = {}): this {
    const terms = {
      settings: { ...defaultAlertSettings, ...settings },
      nowMs: atSeconds * 1000,
      tells: true,
    };
    const steps = stepAlert(rule, snapshot, this.active, terms);
    this.active = steps.flatMap(({ next }) => (next === null ? [] : [next]));
    this.told.push(...steps.flatMap(({ tell }) => tell ?? []));
    this.events.push(...steps.flatMap(({ event }) => event ?? []));
    return this;
  }

  get state(): string {
    return this.active[0]?.state ?? 'ok';
  }
}

describe('R-OB3: the states of an alert', () => {
  it('is pending until it has been beyond its threshold for long enough, then fires, then is well', () => {
    const alert = new Watched();
    expect(alert.step(deep, 0).state).toBe('pending');
    expect(alert.step(deep, 59).state).toBe('pending');
    expect(alert.step(deep, 60)).toMatchObject({ state: 'firing', told: ['firing'] });
    expect(alert.active[0]?.sinceMs).toBe(60_000);
    expect(alert.step(deep, 600).told).toEqual(['firing']);
    expect(alert.step(shallow, 610)).toMatchObject({ state: 'ok', told: ['firing', 'resolved'] });
    expect(alert.step(shallow, 620).events).toEqual(['fired', 'resolved']);
  });

  it('begins anew when it was well in between', () => {
    const alert = new Watched().step(deep, 0).step(shallow, 30).step(deep, 59);
    expect(alert.step(deep, 61).state).toBe('pending');
    expect(alert.events).toEqual([]);
  });

  it('goes by a threshold and a time that were changed, and is well when it is off', () => {
    expect(new Watched().step(deep, 0, { forSeconds: 0 }).state).toBe('firing');
    expect(new Watched().step(deep, 0, { threshold: 60_000, forSeconds: 0 }).state).toBe('ok');
    const alert = new Watched().step(deep, 0, { forSeconds: 0 });
    expect(alert.step(deep, 1, { off: true })).toMatchObject({
      state: 'ok',
      told: ['firing', 'resolved'],
    });
  });

  it('a silence holds back that it fires until the silence is over, and not that it is over', () => {
    const now = { forSeconds: 0 };
    const alert = new Watched().step(deep, 0, { ...now, silencedUntilMs: 100_000 });
    expect(alert).toMatchObject({ state: 'firing', told: [], events: ['fired'] });
    expect(alert.step(deep, 100, { ...now, silencedUntilMs: 100_000 }).told).toEqual(['firing']);
    expect(alert.step(shallow, 110, { ...now, silencedUntilMs: 900_000 }).told).toEqual([
      'firing',
      'resolved',
    ]);
    const unheard = new Watched().step(deep, 0, { ...now, silencedUntilMs: 100_000 });
    expect(unheard.step(shallow, 10, { silencedUntilMs: 100_000 }).told).toEqual([]);
  });

  it('whatever happens, it is told firing and resolved in turns, as often as it fired unsilenced', () => {
    const moment = fc.record({
      isDeep: fc.boolean(),
      passes: fc.integer({ min: 1, max: 90 }),
      isSilenced: fc.boolean(),
      off: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(moment, { maxLength: 60 }), (moments) => {
        const alert = new Watched();
        let at = 0;
        for (const { isDeep, passes, isSilenced, off } of moments) {
          at += passes;
          const silencedUntilMs = isSilenced ? (at + 1) * 1000 : null;
          alert.step(isDeep ? deep : shallow, at, { silencedUntilMs, off });
        }
        expect(alert.told).toEqual(
          alert.told.map((_, index) => (index % 2 === 0 ? 'firing' : 'resolved')),
        );
        expect(alert.events).toEqual(
          alert.events.map((_, index) => (index % 2 === 0 ? 'fired' : 'resolved')),
        );
      }),
    );
  });

  it('R-AD7: fires for a bounded number of queues, and those that fire go on while others are worse', () => {
    const queues = (offset: number) =>
      Array.from({ length: 100 }, (_, index) => ({
        label: `queue-${index + offset}`,
        value: 6_000 + index + offset,
      }));
    const terms = {
      settings: { ...defaultAlertSettings, forSeconds: 0 },
      nowMs: 0,
      tells: true,
    };
    const first = stepAlert(
      ruleOf('queue_depth'),
      { ...emptySnapshot, deepestQueues: queues(0) },
      [],
      terms,
    );
    expect(first).toHaveLength(maxActiveLabels);
    const active = first.flatMap(({ next }) => next ?? []);
    expect(active.map(({ label }) => label)).toContain('queue-99');
    const second = stepAlert(
      ruleOf('queue_depth'),
      { ...emptySnapshot, deepestQueues: queues(10) },
      active,
      terms,
    );
    expect(second.filter(({ event }) => event !== null)).toEqual([]);
  });
});

describe('R-OB3: the table of rules', () => {
  it.each(alertNames)('%s is well on a system that does nothing', (name) => {
    const terms = { settings: defaultAlertSettings, nowMs: 0, tells: true };
    expect(stepAlert(ruleOf(name), emptySnapshot, [], terms)).toEqual([]);
  });

  it.each(alertNames)('%s says in a sentence what it means and what to do', (name) => {
    const { meaning, look, act } = ruleOf(name);
    expect(meaning).toMatch(/^[A-Z].*\.$/);
    expect(look.length).toBeGreaterThan(0);
    expect(act.length).toBeGreaterThan(0);
  });
});
