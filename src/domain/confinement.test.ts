import { describe, expect, it } from 'vitest';
import {
  coversQueues,
  isConfined,
  likePatterns,
  reachesQueue,
  reachesTask,
  unconfined,
} from './confinement.js';

describe('confinement', () => {
  const toModels = { queues: ['gpt-*', 'mail', 'a_b*'], owner: null };

  it.each([
    ['gpt-4o', true],
    ['gpt-', true],
    ['gpt', false],
    ['mail', true],
    ['mails', false],
    ['a_b1', true],
    ['axb1', false],
  ])('R-AD6: a key of gpt-*, mail and a_b* reaches %s: %s', (queue, reached) => {
    expect(reachesQueue(toModels, queue)).toBe(reached);
  });

  it.each([
    [['gpt-*'], ['gpt-4o', 'gpt-mini*'], true],
    [['gpt-4o'], ['gpt-4o*'], false],
    [['gpt-*'], ['gpt-4o', 'mail'], false],
    [['*'], ['gpt-*'], true],
    [['*'], null, false],
    [null, ['*'], true],
    [null, null, true],
  ])('R-AD6: %j reaches all that %j reaches: %s', (queues, others, covered) => {
    expect(coversQueues({ queues, owner: null }, { queues: others, owner: null })).toBe(covered);
  });

  it('R-AD6: own tasks are those of the same key in the queues it reaches', () => {
    const own = { queues: ['mail'], owner: 'k1' };
    expect(reachesTask(own, { queue: 'mail', owner: 'k1' })).toBe(true);
    expect(reachesTask(own, { queue: 'mail', owner: 'k2' })).toBe(false);
    expect(reachesTask(own, { queue: 'mail', owner: null })).toBe(false);
    expect(reachesTask(own, { queue: 'other', owner: 'k1' })).toBe(false);
  });

  it('is none by default, and is written for SQL with wildcards of its own escaped', () => {
    expect([isConfined(unconfined), isConfined(toModels)]).toEqual([false, true]);
    expect([likePatterns(unconfined), likePatterns(toModels)]).toEqual([
      null,
      ['gpt-%', 'mail', 'a\\_b%'],
    ]);
  });
});
