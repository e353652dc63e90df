import { describe, expect, it } from 'vitest';
import { allows, isScope, scopes } from './scopes.js';

describe('scopes', () => {
  it('R-AD6: each allows itself, admin allows all, and what is open asks for none', () => {
    const allowed = scopes.map((granted) => scopes.filter((needed) => allows([granted], needed)));
    expect(allowed).toEqual([['submit'], ['read'], ['worker'], [...scopes]]);
    expect([allows([], 'open'), allows([], 'read')]).toEqual([true, false]);
  });

  it('knows what is none', () => {
    expect([isScope('read'), isScope('root'), isScope('toString')]).toEqual([true, false, false]);
  });
});
