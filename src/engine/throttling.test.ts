import { describe, expect, it } from 'vitest';
import { closed, type Circuit } from '../domain/circuit.js';
import type { HeldBackBy } from '../ready/ready-queue.js';
import type { QueueLine } from './line.js';
import { Throttling } from './throttling.js';

const one = { count: 1, oldestAgeMs: 0 };

function line(heldBackBy: HeldBackBy | null): QueueLine {
  return {
    depth: { high: 1, medium: 0, low: 0 },
    waiting: { high: one, medium: { ...one, count: 0 }, low: { ...one, count: 0 } },
    backlog: 0,
    running: 0,
    heldBackBy,
  };
}

const open = { kind: 'open', reason: 'rate_limited', trips: 0, slots: 1 } as const;
const pushedBack: Circuit = { ...open, untilMs: 0, probesAtMs: 0 };

describe('the time in which queues were held back', () => {
  it('R-OB1: adds up by queue and reason, while something waits', () => {
    const throttling = new Throttling();
    const queues = new Map([
      ['limited', line('rate_limit')],
      ['free', line(null)],
      ['stopped', line('pause')],
      ['pushed back', line('pause')],
    ]);
    const circuitOf = (queue: string) => (queue === 'pushed back' ? pushedBack : closed);
    for (const seconds of [5, 5, 600]) throttling.note(queues, circuitOf, seconds);
    // Of ten minutes nobody saw more than the last 15 s.
    expect([...throttling]).toEqual([
      { queue: 'limited', reason: 'rate_limit', seconds: 25 },
      { queue: 'stopped', reason: 'paused', seconds: 25 },
      { queue: 'pushed back', reason: 'pushed_back', seconds: 25 },
    ]);
  });

  it('R-AD7: names 200 queues, and adds up the others', () => {
    const throttling = new Throttling();
    const names = Array.from({ length: 300 }, (_, n) => `q${n}`);
    const queues = new Map(names.map((name) => [name, line('max_concurrency')]));
    throttling.note(queues, () => closed, 1);
    const found = [...throttling];
    expect(found).toHaveLength(201);
    expect(found.at(-1)).toEqual({ queue: '(other)', reason: 'max_concurrency', seconds: 100 });
  });
});
