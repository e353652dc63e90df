import { expect, it } from 'vitest';
import { closed, type Circuit } from './circuit.js';
import { becameOf } from './pushback.js';

const open = (untilMs: number): Circuit => ({
  kind: 'open',
  reason: 'rate_limited',
  trips: 0,
  slots: 1,
  untilMs,
  probesAtMs: untilMs,
});

it.each([
  ['goes on', closed, closed, 'goes_on', null],
  ['stops', closed, open(5), 'stopped', 5],
  ['stands still for longer', open(5), open(9), 'stopped', 9],
  ['stood still already', open(9), open(9), 'was_stopped', 9],
] as const)('R-RE9: a queue that is told to slow down %s', (_, before, after, became, untilMs) => {
  expect(becameOf(before, after)).toEqual({ became, untilMs });
});
