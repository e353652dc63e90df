import { expect, it } from 'vitest';

import type { TaskId } from '../../src/domain/ids.js';
import { bounds } from '../../src/protocol/bounds.js';
import type { ListedTask, ListInclude } from '../../src/protocol/tasks-api.js';
import { describeOnEveryEngine, freshQueue, submitAll, TestWorker } from './support.js';

const kib = 1024;
const mib = 1024 * kib;

describeOnEveryEngine('huge answers', (under) => {
  it('R-HA3: a list leaves out parameters and results, unless it is asked for them', async () => {
    const { engine } = under();
    const queue = freshQueue();
    const taskIds = await completeWithResults(queue, 12, mib - 100);
    const light = await engine.listTasks({ queue, status: 'completed' }, { limit: 1_000 });
    expect(light.items).toHaveLength(12);
    expect(light.nextCursor).toBeNull();
    expect(bytesOf(light)).toBeLessThan(100 * kib);
    for (const task of light.items) {
      expect(task).not.toHaveProperty('parameters');
      expect(task).not.toHaveProperty('result');
    }
    const [whole] = (await engine.listTasks({ queue }, { limit: 1, include: both })).items;
    expect(whole).toMatchObject({ taskId: taskIds.at(-1), parameters: { n: 11 } });
    expect(whole?.result).toHaveLength(mib - 100);
    const one = await engine.listTasks({ queue }, { limit: 1, include: ['parameters'] });
    expect(one.items[0]).toHaveProperty('parameters');
    expect(one.items[0]).not.toHaveProperty('result');
  });

  it('R-HA3: a page ends early when it passes 8 MiB, and its cursor leads to the rest', async () => {
    const { engine } = under();
    const queue = freshQueue();
    const taskIds = await completeWithResults(queue, 12, mib - 100);
    const pages = await pagesOf((cursor) =>
      engine.listTasks({ queue }, { limit: 1_000, include: both, ...cursor }),
    );
    expect(pages.flat().map(({ taskId }) => taskId)).toEqual(taskIds.toReversed());
    expect(pages.length).toBeGreaterThan(1);
    for (const page of pages) {
      expect(bytesOf(page)).toBeLessThan(bounds.answerBytes + bounds.resultBytes + 10 * kib);
    }
  });

  it('R-HA3: a list of dead letters ends early too, however large their errors are', async () => {
    const { engine } = under();
    const queue = freshQueue();
    const taskIds = await submitAll(
      engine,
      Array.from({ length: 24 }, () => ({ taskType: 'large', queue, parameters: textOf(200) })),
    );
    const worker = await TestWorker.register(engine);
    const details = 'x'.repeat(200 * kib);
    for (const task of await worker.take(24, { queues: [queue] })) {
      await worker.fail(task, { retriable: false, details });
    }
    const light = await engine.listDeadLetters({ queue }, { limit: 1_000 });
    expect(light.totalCount).toBe(24);
    const pages = await pagesOf((cursor) =>
      engine.listDeadLetters({ queue }, { limit: 1_000, include: both, ...cursor }),
    );
    expect(pages.flat().map(({ taskId }) => taskId)).toEqual(taskIds.toReversed());
    expect(pages.length).toBeGreaterThan(1);
    for (const page of pages) expect(bytesOf(page)).toBeLessThan(bounds.answerBytes + mib);
  });

  it('R-HA3: a poll answers 8 MiB at most, and claims no more than it answers', async () => {
    const { engine } = under();
    const queue = freshQueue();
    const count = 100;
    for (let from = 0; from < count; from += 20) {
      await submitAll(
        engine,
        Array.from({ length: 20 }, () => ({ taskType: 'large', queue, parameters: textOf(200) })),
      );
    }
    const worker = await TestWorker.register(engine, { capacity: 5_000 });
    const answers: number[] = [];
    for (let got = 0; got < count;) {
      const tasks = await worker.take(1, { availableCapacity: 5_000, queues: [queue] });
      expect(bytesOf(tasks)).toBeLessThan(bounds.answerBytes + bounds.taskBytes);
      got += tasks.length;
      answers.push(tasks.length);
      const running = await engine.listTasks({ queue, status: 'executing' }, { limit: 1_000 });
      expect(running.items).toHaveLength(got);
    }
    expect(answers.reduce((sum, n) => sum + n)).toBe(count);
    expect(Math.min(...answers.slice(0, -1))).toBeGreaterThan(1);
    const attempts = await engine.listTasks({ queue }, { limit: 1_000 });
    expect(attempts.items.every(({ attempt }) => attempt === 1)).toBe(true);
  });

  it('R-HA3: a poll gives 1,000 tasks at most, whatever capacity it names', async () => {
    const { engine } = under();
    const queue = freshQueue();
    await submitAll(
      engine,
      Array.from({ length: 1_500 }, () => ({ taskType: 'small', queue })),
    );
    const worker = await TestWorker.register(engine, { capacity: 5_000 });
    const tasks = await worker.take(1, { availableCapacity: 5_000, queues: [queue] });
    expect(tasks.length).toBeLessThanOrEqual(bounds.pollTasks);
    const rest = await worker.take(1_500 - tasks.length, { queues: [queue] });
    expect(new Set([...tasks, ...rest].map(({ taskId }) => taskId)).size).toBe(1_500);
  });

  async function completeWithResults(
    queue: string,
    count: number,
    bytes: number,
  ): Promise<readonly TaskId[]> {
    const { engine } = under();
    const taskIds = await submitAll(
      engine,
      Array.from({ length: count }, (_, n) => ({ taskType: 'large', queue, parameters: { n } })),
    );
    const worker = await TestWorker.register(engine);
    for (const task of await worker.take(count, { queues: [queue] })) {
      await worker.complete(task, 'r'.repeat(bytes));
    }
    return taskIds;
  }
});

const both: readonly ListInclude[] = ['parameters', 'result'];

function textOf(kilobytes: number): { readonly text: string } {
  // Random enough that Postgres cannot make it much smaller.
  const text = Array.from({ length: kilobytes * 64 }, () =>
    Math.random().toString(36).slice(2, 18),
  );
  return {
    text: text
      .join('')
      .padEnd(kilobytes * kib, 'x')
      .slice(0, kilobytes * kib),
  };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

async function pagesOf(
  list: (page: { cursor?: string }) => Promise<{
    readonly items: readonly ListedTask[];
    readonly nextCursor: string | null;
  }>,
): Promise<(readonly ListedTask[])[]> {
  const pages: (readonly ListedTask[])[] = [];
  let cursor: string | null = null;
  do {
    const page = await list(cursor === null ? {} : { cursor });
    pages.push(page.items);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return pages;
}
