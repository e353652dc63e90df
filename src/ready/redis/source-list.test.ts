import { describe, expect, it } from 'vitest';
import { SourceList } from './source-list.js';

const named = (letter: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${letter}${index}`);

/** A worker that names so many of each, and a list of what waits for it. */
function listFor(taskTypes: readonly string[], capabilities: readonly string[]): SourceList {
  const list = new SourceList();
  const keys = taskTypes.flatMap((type) => capabilities.map((name) => `\n${type}\n${name}`));
  list.update('1:1', false, keys);
  return list;
}

describe('what a take asks for, in parts', () => {
  it('R-HA3: is not made before it is asked for, however many queues and sources there are', () => {
    const request = { taskTypes: named('t', 1_000), capabilities: named('c', 10), count: 1 };
    const list = listFor(request.taskTypes, request.capabilities);
    const queues = named('q', 1_000);
    const before = process.cpuUsage();
    for (let nth = 0; nth < 10; nth += 1) {
      const parts = list.partsFor({ ...request, queues })[Symbol.iterator]();
      for (let asked = 0; asked < 100; asked += 1) expect(parts.next().done).toBe(false);
    }
    // All of them, each time, are 125,000 parts and three seconds.
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(1);
  });

  it('R-CH1: is every queue with every source', () => {
    const request = { taskTypes: named('t', 50), capabilities: named('c', 4), count: 1 };
    const list = listFor(request.taskTypes, request.capabilities);
    const queues = named('q', 7);
    const asked = new Set<string>();
    for (const [kind, count, ...values] of list.partsFor({ ...request, queues })) {
      expect(kind).toBe('some-named');
      const names = values.slice(0, Number(count));
      for (const group of values.slice(Number(count))) {
        for (const name of names) asked.add(`${name} ${group}`);
      }
    }
    expect(asked.size).toBe(7 * 50 * 4);
  });
});
