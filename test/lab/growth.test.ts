import { describe, expect, it } from 'vitest';
import { compare } from '../../bench/growth/compare.js';
import { Drafts } from '../../bench/growth/drafts.js';
import type { Values } from '../../bench/growth/measures.js';
import { soakRows, type Sample } from '../../bench/growth/soak-samples.js';
import { readFlags } from '../../lab/shared/command.js';

const small = { title: '1,000 waiting', rounds: rounds({ perSecond: [100, 50, 200] }) };

describe('R-LA3: growth', () => {
  it('compares by round: what slowed a round down slowed both sides', () => {
    const large = { title: '100,000 waiting', rounds: rounds({ perSecond: [95, 47.5, 190] }) };
    const [row] = compare('memory', [small, large]);
    expect(row).toMatchObject({
      what: 'memory, tasks per second: 1,000 waiting; 100,000 waiting',
      wanted: '≥ 0.9',
      verdict: 'ok',
      numbers: { small: [100, 50, 200], '100,000 waiting, ratio': 0.95 },
    });
    expect(row?.measured).toContain('ratio 0.95 (0.95 to 0.95)');
  });

  it.each([
    ['fewer tasks', { perSecond: [100, 100, 100] }, { perSecond: [89, 89, 89] }, 'missed'],
    ['more tasks', { perSecond: [100, 100, 100] }, { perSecond: [300, 300, 300] }, 'ok'],
    ['more time', { takeP99: [10, 10, 10] }, { takeP99: [12, 12, 12] }, 'missed'],
    ['less time', { takeP99: [10, 10, 10] }, { takeP99: [5, 5, 5] }, 'ok'],
    ['more memory', { memory: [100, 100, 100] }, { memory: [112, 112, 112] }, 'missed'],
    ['one bad round', { takeP99: [10, 10, 10] }, { takeP99: [10, 90, 10] }, 'ok'],
    ['a step alone', { claimMicros: [10, 10, 10] }, { claimMicros: [90, 90, 90] }, 'noted'],
  ])('judges %s the right way round', (_, before, after, verdict) => {
    const [row] = compare('memory', [
      { title: 'small', rounds: rounds(before) },
      { title: 'large', rounds: rounds(after) },
    ]);
    expect(row?.verdict).toBe(verdict);
  });

  it('misses its goal when one of several larger cases does', () => {
    const same = { title: 'a', rounds: small.rounds };
    const slow = { title: 'b', rounds: rounds({ perSecond: [50, 25, 100] }) };
    expect(compare('memory', [small, same, slow]).map(({ verdict }) => verdict)).toEqual([
      'missed',
    ]);
    expect(compare('memory', [])).toEqual([]);
  });

  it('deals tasks evenly over its queues', () => {
    const drafts = new Drafts(3);
    const queues = [...drafts.take(4), ...drafts.take(2)].map(({ queue }) => queue);
    expect(queues).toEqual([0, 1, 2, 0, 1, 2].map((index) => `queue-${index}`));
  });
});

describe('R-LA3: a soak', () => {
  const calm: Sample = {
    serverMegabytes: 100,
    workerMegabytes: 100,
    postgresMegabytes: 100,
    serverFiles: 30,
    workerFiles: 30,
    connections: 10,
    deadTuples: 0,
    liveTablesMegabytes: 5,
  };

  it('holds when nothing grows, though caches fill at first', () => {
    const samples = Array.from({ length: 120 }, (_, index) => ({
      ...calm,
      serverMegabytes: index < 12 ? 50 : 100,
    }));
    expect(soakRows(samples).every(({ verdict }) => verdict === 'ok')).toBe(true);
  });

  it.each(Object.keys(calm))('sees that %s grows', (kind) => {
    const samples = Array.from({ length: 120 }, (_, index) => ({ ...calm, [kind]: 100 + index }));
    const missed = soakRows(samples).filter(({ verdict }) => verdict === 'missed');
    expect(missed).toHaveLength(1);
  });
});

describe('R-LA3: flags', () => {
  const command = {
    name: 'growth',
    title: 'Growth',
    preface: '',
    scenarios: [{ name: 'queues', about: 'many', run: () => Promise.resolve([]) }],
    numbers: { rounds: { about: 'rounds', whole: 7, quick: 2 } },
  };

  it('takes numbers, and smaller ones when it is to be quick', () => {
    expect(readFlags(command, [])?.numbers).toEqual({ rounds: 7 });
    expect(readFlags(command, ['--quick'])?.numbers).toEqual({ rounds: 2 });
    expect(readFlags(command, ['--quick', '--rounds', '5'])?.numbers).toEqual({ rounds: 5 });
    expect(readFlags(command, ['--only', 'queues', '--json', 'a.json'])).toMatchObject({
      only: ['queues'],
      json: 'a.json',
    });
    expect(readFlags(command, ['--help'])).toBeNull();
  });

  it.each([
    [['--rounds', '0'], '--rounds takes a whole number above 0, not 0.'],
    [['--only', 'soak'], 'There is no soak; there are queues.'],
    [['--quick', '--write'], 'A quick run measures nothing worth writing down.'],
    [['--long'], 'There is no longer run'],
    [['--loud'], "Unknown option '--loud'"],
  ])('refuses %j', (args, sentence) => {
    expect(() => readFlags(command, args)).toThrow(sentence);
  });
});

function rounds(values: Readonly<Record<string, readonly number[]>>): Values[] {
  const [length = 0] = Object.values(values).map((list) => list.length);
  return Array.from({ length }, (_, round) =>
    Object.fromEntries(Object.entries(values).map(([name, list]) => [name, list[round]])),
  );
}
