import { expect, it } from 'vitest';
import { priorities, type Priority } from '../../src/domain/priority.js';
import type { Engine } from '../../src/engine/open-engine.js';
import { heapBytes } from '../support/heap-bytes.js';
import { describeOnPostgres, indexOf, submitAll, TestWorker } from './support.js';

const queue = 'backlog';
const count = 100_000;
const maxReady = 1_000;
const megabyte = 1024 * 1024;

describeOnPostgres('a long backlog', (server) => {
  it('R-CH8: 100,000 tasks are accepted and drained in order, in a ready queue of 1,000 a priority and in flat memory', async () => {
    const engine = await server().open({ settings: { leaseMs: 600_000 } });
    await engine.putQueue(queue, { maxReady });
    const worker = await TestWorker.register(engine);
    await roundTrip(engine, worker, 5_000);
    const emptyBytes = heapBytes();

    await submit(engine, count);
    await expectBounded(engine);
    const fullBytes = heapBytes();

    const line = new Line();
    let halfBytes = 0;
    for (let done = 0; done < count;) {
      const tasks = await worker.look(1_000, { waitMs: 5_000 });
      for (const { priority, ...task } of tasks) line.take(priority, indexOf(task));
      await worker.completeAll(tasks);
      if (done % 10_000 > (done + tasks.length) % 10_000) await expectBounded(engine);
      if (done < count / 2 && done + tasks.length >= count / 2) halfBytes = heapBytes();
      done += tasks.length;
    }
    expect(line.broken).toEqual([]);
    expect(line.taken).toBe(count);

    // Two hundred bytes for each of them would be 20 MB.
    expect((fullBytes - emptyBytes) / megabyte).toBeLessThan(15);
    expect((halfBytes - emptyBytes) / megabyte).toBeLessThan(15);
    expect((heapBytes() - emptyBytes) / megabyte).toBeLessThan(15);
  });
});

/** What comes next in each priority: every third of the tasks submitted. */
class Line {
  readonly broken: string[] = [];
  taken = 0;
  readonly #next = new Map<Priority, number>(priorities.map((priority, n) => [priority, n]));

  take(priority: Priority, index: number): void {
    const expected = this.#next.get(priority) ?? 0;
    if (index !== expected && this.broken.length < 5) {
      this.broken.push(`${priority}: ${index} came instead of ${expected}`);
    }
    this.#next.set(priority, index + priorities.length);
    this.taken += 1;
  }
}

async function submit(engine: Engine, tasks: number): Promise<void> {
  const step = 5_000;
  for (let from = 0; from < tasks; from += step) {
    await submitAll(
      engine,
      Array.from({ length: step }, (_, n) => ({
        taskType: 'noop',
        queue,
        priority: priorities[(from + n) % priorities.length] ?? 'low',
        parameters: { index: from + n },
      })),
    );
  }
}

/** So that what is compiled and cached on first use is not counted as growth. */
async function roundTrip(engine: Engine, worker: TestWorker, tasks: number): Promise<void> {
  await submit(engine, tasks);
  for (let done = 0; done < tasks;) {
    const taken = await worker.take(Math.min(500, tasks - done));
    await worker.completeAll(taken);
    done += taken.length;
  }
}

async function expectBounded(engine: Engine): Promise<void> {
  const { live } = await engine.getQueue(queue);
  for (const priority of priorities) expect(live.depth[priority]).toBeLessThanOrEqual(maxReady);
}
