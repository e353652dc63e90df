import { describe, expect, it } from 'vitest';
import { UsedTokens } from './used-tokens.js';

describe('the tokens of an attempt', () => {
  it('R-OB2: are unknown while no span has told of any', () => {
    const used = new UsedTokens();
    used.started('a', 'attempt');
    expect(used.total()).toBeNull();
  });

  it('R-OB2: of a span and of those inside it count once, also when it ends first', () => {
    const used = new UsedTokens();
    used.started('agent', 'attempt');
    used.started('step', 'agent');
    used.started('call', 'step');
    used.started('other', 'attempt');
    used.ended('agent', 10);
    used.ended('call', 10);
    used.ended('other', 5);
    expect(used.total()).toBe(15);
  });

  it('R-OB2: are those of the children where they are more than their parent tells', () => {
    const used = new UsedTokens();
    used.started('agent', 'attempt');
    used.started('first', 'agent');
    used.started('second', 'agent');
    used.ended('first', 7);
    used.ended('second', 8);
    used.ended('agent', 8);
    expect(used.total()).toBe(15);
  });

  it('R-OB2: are bounded in memory, and so deep as spans may be', () => {
    const used = new UsedTokens();
    for (let n = 0; n < 20_000; n += 1) used.started(`${n}`, `${n - 1}`);
    used.ended('9999', 3);
    used.ended('19999', 1_000);
    expect(used.total()).toBe(3);
  });
});
