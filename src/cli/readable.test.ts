import { expect, it } from 'vitest';
import { bars, readableAge, readableSeconds } from './readable.js';

it.each([
  [0, '0 ms'],
  [0.83, '830 ms'],
  [4.24, '4.2 s'],
  [59.6, '60 s'],
  [180, '3 min'],
  [18_000, '5 h'],
  [259_200, '3 d'],
])('%d seconds are %s', (seconds, text) => {
  expect(readableSeconds(seconds)).toBe(text);
});

it('clocks that disagree make nothing older than new', () => {
  expect(readableAge(new Date(2_000), new Date(1_000))).toBe('0 ms ago');
});

it('draws values as bars', () => {
  expect(bars([0, 1, 4, 8, 0])).toBe('·▁▄█·');
  expect(bars([0, 0])).toBe('··');
});
