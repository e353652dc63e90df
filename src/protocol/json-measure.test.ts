import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bounds } from './bounds.js';
import { findJsonFault } from './json-measure.js';

describe('findJsonFault', () => {
  it('finds a value too large exactly when its JSON is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: -3, max: 3 }), (value, spare) => {
        const maxBytes = Buffer.byteLength(JSON.stringify(value)) + spare;
        expect(findJsonFault(value, maxBytes)).toBe(spare < 0 ? 'too_large' : null);
      }),
    );
  });

  it('finds what is nested deeper than can be written out', () => {
    expect(findJsonFault(nested(bounds.jsonDepth), 1e6)).toBeNull();
    expect(findJsonFault(nested(bounds.jsonDepth + 1), 1e6)).toBe('too_deep');
    expect(findJsonFault(nested(100_000), 1e6)).toBe('too_deep');
  });

  it('finds numbers that JSON.stringify would write as null', () => {
    expect(findJsonFault(JSON.parse('{"a":[1e999]}'), 1e6)).toBe('not_finite');
  });
});

function nested(depth: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < depth; level += 1) value = [value];
  return value;
}
