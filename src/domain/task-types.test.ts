import { describe, expect, it } from 'vitest';
import { judgeDefinition, type ToldDefinition } from './task-types.js';

const told = (of: Partial<ToldDefinition> = {}): ToldDefinition => ({
  ...{ queue: 'gpt-4o', fingerprint: 'a', version: null, within: null },
  ...of,
});
const nobody = { any: false, ofPresentVersion: false };
const others = { any: true, ofPresentVersion: true };
const taken = { kind: 'take', isDisputed: false };
const disputed = { kind: 'take', isDisputed: true };
const kept = { kind: 'keep' };
const refused = (why: string) => ({ kind: 'refuse', why });

describe('which definition of a task type counts', () => {
  it('is the first, until another one differs', () => {
    expect(judgeDefinition(null, told(), nobody)).toEqual(taken);
    expect(judgeDefinition(told(), told(), others)).toEqual(kept);
  });

  it('is the one of the newest version, also when an older one registers later', () => {
    const present = told({ version: '1.9.0' });
    const newer = told({ fingerprint: 'b', version: '1.10.0' });
    expect(judgeDefinition(present, newer, others)).toEqual(taken);
    expect(judgeDefinition(newer, present, others)).toEqual(refused('older'));
  });

  it('is an older one again when no worker runs the newer version any more', () => {
    const newer = told({ version: '2.0.0' });
    const older = told({ fingerprint: 'b', version: '1.0.0' });
    expect(judgeDefinition(newer, older, { any: true, ofPresentVersion: false })).toEqual(taken);
  });

  it.each([
    [null, null],
    ['1.0.0', null],
    [null, '1.0.0'],
    ['4f2ca91', '9c01d7e'],
    ['1.0.0', '1.0.0'],
  ])(
    'is the latest where versions %s and %s have no order, disputed while others live',
    (one, other) => {
      const present = told({ version: one });
      const next = told({ fingerprint: 'b', version: other });
      expect(judgeDefinition(present, next, others)).toEqual(disputed);
      expect(judgeDefinition(present, next, nobody)).toEqual(taken);
    },
  );

  it('takes the version of an equal definition along, and never back', () => {
    const one = told({ version: '1.0.0' });
    const two = told({ version: '2.0.0' });
    expect(judgeDefinition(one, two, others)).toEqual(taken);
    expect(judgeDefinition(two, one, others)).toEqual(kept);
  });
});

describe('what a key that is confined to queues may define', () => {
  const confined = { within: ['gpt-*'] };

  it('R-AD6: is not where submits go that it does not reach', () => {
    const away = told({ queue: 'mail', fingerprint: 'b', ...confined });
    expect(judgeDefinition(told(confined), away, nobody)).toEqual(refused('confined'));
    const toDefault = told({ queue: null, fingerprint: 'b', ...confined });
    expect(judgeDefinition(told(confined), toDefault, nobody)).toEqual(refused('confined'));
  });

  it('R-AD6: is not a type whose submits go to a queue that it does not reach', () => {
    expect(judgeDefinition(null, told(confined), nobody)).toEqual(refused('confined'));
    const reachesDefault = told({ within: ['gpt-*', 'default'] });
    expect(judgeDefinition(null, reachesDefault, nobody)).toEqual(taken);
  });

  it('R-AD6: is not what a key defined that reaches more', () => {
    const next = told({ fingerprint: 'b', ...confined });
    expect(judgeDefinition(told(), next, nobody)).toEqual(refused('confined'));
    expect(judgeDefinition(told({ within: ['*'] }), next, nobody)).toEqual(refused('confined'));
    expect(judgeDefinition(told({ within: ['gpt-4o'] }), next, nobody)).toEqual(taken);
    expect(judgeDefinition(told(), told(confined), nobody)).toEqual(kept);
  });
});
