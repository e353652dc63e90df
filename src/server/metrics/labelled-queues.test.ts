import { describe, expect, it } from 'vitest';
import type { QueueLine } from '../../engine/line.js';
import { LabelledQueues } from './labelled-queues.js';

function line(running: number): QueueLine {
  const none = { count: 0, oldestAgeMs: null };
  return {
    depth: { high: 0, medium: 0, low: 0 },
    waiting: { high: none, medium: none, low: none },
    backlog: 0,
    running,
    heldBackBy: null,
  };
}

const lines = (running: Record<string, number>) =>
  new Map(Object.entries(running).map(([name, tasks]) => [name, line(tasks)]));

describe('queues that metrics name', () => {
  it('R-OB1: are those that were configured first, then the busiest', () => {
    const labelled = new LabelledQueues(3);
    const chosen = labelled.choose(lines({ small: 1, big: 9, bigger: 10 }), new Set(['idle']));
    expect([...chosen]).toEqual(['idle', 'bigger', 'big']);
  });

  it('R-OB1: keep their names while they have tasks', () => {
    const labelled = new LabelledQueues(1);
    labelled.choose(lines({ first: 1 }), new Set());
    expect([...labelled.choose(lines({ first: 1, other: 99 }), new Set())]).toEqual(['first']);
    expect([...labelled.choose(lines({ other: 99 }), new Set())]).toEqual(['other']);
  });
});
