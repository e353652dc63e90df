import { expect, it } from 'vitest';
import type { WorkerId } from '../domain/ids.js';
import { Witnesses } from './witnesses.js';

const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'] as WorkerId[] as [
  WorkerId,
  WorkerId,
  WorkerId,
  WorkerId,
  WorkerId,
];

it('knows since when and until when a worker did a kind well', () => {
  const witnesses = new Witnesses();
  witnesses.add('chat', a, 10);
  witnesses.add('chat', b, 20);
  witnesses.add('chat', a, 30);
  witnesses.add('draw', a, 40);
  expect(witnesses.of('chat')).toEqual([
    { workerId: a, sinceMs: 10, lastMs: 30 },
    { workerId: b, sinceMs: 20, lastMs: 20 },
  ]);
  expect(witnesses.of('draw')).toEqual([{ workerId: a, sinceMs: 40, lastMs: 40 }]);
  expect(witnesses.of('sing')).toEqual([]);
});

it('begins anew with a worker that stumbled', () => {
  const witnesses = new Witnesses();
  witnesses.add('chat', a, 10);
  witnesses.add('draw', a, 10);
  witnesses.delete('chat', a);
  witnesses.delete('sing', a);
  expect(witnesses.of('chat')).toEqual([]);
  witnesses.add('chat', a, 20);
  expect(witnesses.of('chat')).toEqual([{ workerId: a, sinceMs: 20, lastMs: 20 }]);
  expect(witnesses.of('draw')).toEqual([{ workerId: a, sinceMs: 10, lastMs: 10 }]);
});

it('of each kind keeps the four it heard of last', () => {
  const witnesses = new Witnesses();
  for (const [index, workerId] of [a, b, c, d].entries()) witnesses.add('chat', workerId, index);
  witnesses.add('chat', a, 10);
  witnesses.add('chat', e, 11);
  expect(new Set(witnesses.of('chat').map(({ workerId }) => workerId))).toEqual(
    new Set([a, c, d, e]),
  );
  witnesses.deleteAll([a, d]);
  witnesses.add('chat', b, 12);
  expect(new Set(witnesses.of('chat').map(({ workerId }) => workerId))).toEqual(new Set([b, c, e]));
});

it('keeps the kinds that came last, and nothing of the others', () => {
  const witnesses = new Witnesses(2);
  witnesses.add('one', a, 10);
  witnesses.add('one', b, 10);
  witnesses.add('two', a, 20);
  witnesses.add('three', c, 30);
  expect(witnesses.of('one')).toEqual([]);
  expect(witnesses.of('two')).toEqual([{ workerId: a, sinceMs: 20, lastMs: 20 }]);
  expect(witnesses.of('three')).toEqual([{ workerId: c, sinceMs: 30, lastMs: 30 }]);
});
