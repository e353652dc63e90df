import { describe, expect, it } from 'vitest';
import {
  canMove,
  hasEnded,
  isLeased,
  taskStates,
  transitions,
  type TaskState,
} from './task-state.js';

function verbsFrom(state: TaskState): string[] {
  return transitions.filter(({ from }) => from === state).map(({ verb }) => verb);
}

function reachableFrom(start: TaskState | 'new'): Set<string> {
  const reached = new Set<string>([start]);
  for (const state of reached) {
    for (const { from, to } of transitions) if (from === state) reached.add(to);
  }
  return reached;
}

describe('the transition table', () => {
  it('R-ST1: names every move once', () => {
    const moves = transitions.map(({ from, to }) => `${from} → ${to}`);
    expect(new Set(moves).size).toBe(moves.length);
  });

  it('R-ST1: reaches every state from a submit', () => {
    expect([...reachableFrom('new')].sort()).toEqual(['new', ...taskStates].sort());
  });

  it('R-ST1: lets every task that has not ended come to each of the four ends', () => {
    const ends = taskStates.filter(hasEnded);
    for (const state of taskStates.filter((one) => !hasEnded(one))) {
      expect([...reachableFrom(state)]).toEqual(expect.arrayContaining(ends));
    }
  });

  it('R-ST1: an ended task is left only by replay or cancel, a completed one never', () => {
    for (const state of taskStates.filter(hasEnded)) {
      expect(['cancel', 'replay']).toEqual(expect.arrayContaining(verbsFrom(state)));
    }
    expect(verbsFrom('completed')).toEqual([]);
    expect(verbsFrom('cancelled')).toEqual(['replay']);
  });

  it('R-RE5: replay brings back any ended task but a completed one', () => {
    const replayed = transitions.filter(({ verb }) => verb === 'replay').map(({ from }) => from);
    expect(replayed.sort()).toEqual(
      taskStates.filter((state) => hasEnded(state) && state !== 'completed').sort(),
    );
  });

  it('R-WO7: anything that has not ended can be cancelled', () => {
    for (const state of taskStates.filter((one) => !hasEnded(one))) {
      expect(canMove(state, 'cancelled')).toBe(true);
    }
  });

  it('R-ST3: a lease begins with a claim and is kept only by start', () => {
    const leased = taskStates.filter(isLeased);
    expect(leased).toEqual(['assigned', 'executing']);
    for (const { verb, from, to } of transitions) {
      if (!isLeased(to)) continue;
      const holdsLease = from !== 'new' && isLeased(from);
      expect(verb).toBe(holdsLease ? 'start' : 'claim');
    }
  });

  it('R-ST3: no state is both leased and ended', () => {
    expect(taskStates.filter((state) => isLeased(state) && hasEnded(state))).toEqual([]);
  });

  it('R-CH11: only what was never claimed fails for want of capacity', () => {
    const expiring = transitions.filter(({ to }) => to === 'failed');
    expect(expiring.map(({ verb, from }) => `${verb} ${from}`)).toEqual([
      'expire pending',
      'expire queued',
    ]);
  });

  it('canMove says what the table says', () => {
    for (const from of ['new', ...taskStates] as const) {
      for (const to of taskStates) {
        const listed = transitions.some((move) => move.from === from && move.to === to);
        expect(canMove(from, to)).toBe(listed);
      }
    }
  });
});
