import { expect, it } from 'vitest';

import type { TaskDraft } from '../../src/protocol/tasks-api.js';
import { describeOnEveryEngine, describeOnPostgres, refusal, TestWorker } from './support.js';

describeOnPostgres('idempotency keys on several connections', (server) => {
  it('R-ST4: 100 concurrent submits with one key, over two processes, make one task', async () => {
    const serving = await server().open();
    const submitting = await server().open({ role: 'submit' });
    for (let round = 0; round < 10; round++) {
      const draft: TaskDraft = {
        taskType: 'noop',
        queue: 'keyed',
        parameters: { round },
        idempotencyKey: `key-${round}`,
      };
      const receipts = await Promise.all(
        Array.from({ length: 100 }, (_, index) =>
          (index % 2 === 0 ? serving : submitting).submit(draft),
        ),
      );
      expect(new Set(receipts.map(({ taskId }) => taskId)).size).toBe(1);
      expect(receipts.filter(({ created }) => created)).toHaveLength(1);
    }
    const rows = await server().sql<{ count: string }>('select count(*) from sluice.tasks');
    expect(Number(rows[0]?.count)).toBe(10);
    const inputs = await server().sql<{ count: string }>('select count(*) from sluice.task_inputs');
    expect(Number(inputs[0]?.count)).toBe(10);
  });

  it('R-ST4: batches with the same keys in opposite order do not hold each other up', async () => {
    const engines = await Promise.all([
      server().open(),
      server().open({ role: 'submit' }),
      server().open({ role: 'submit' }),
    ]);
    const drafts = Array.from({ length: 500 }, (_, index) => ({
      taskType: 'noop',
      queue: 'crossed',
      idempotencyKey: `crossed-${index}`,
    }));
    const answers = await Promise.all(
      engines.map((engine, n) => engine.submitMany(n % 2 === 0 ? drafts : drafts.toReversed())),
    );
    const receipts = answers.flat().map((outcome) => {
      if (outcome.kind === 'refused') throw new Error(outcome.detail);
      return outcome.receipt;
    });
    expect(receipts).toHaveLength(1_500);
    expect(receipts.filter(({ created }) => created)).toHaveLength(500);
    expect(new Set(receipts.map(({ taskId }) => taskId)).size).toBe(500);
  });
});

describeOnEveryEngine('idempotency keys', (under) => {
  it('R-ST4: the same key twice in one batch makes one task', async () => {
    const { engine } = under();
    const draft = { taskType: 'noop', queue: 'twice', idempotencyKey: 'twice' };
    const outcomes = await engine.submitMany([draft, { ...draft, priority: 'high' }, draft]);
    const receipts = outcomes.map((outcome) => {
      if (outcome.kind === 'refused') throw new Error(outcome.detail);
      return outcome.receipt;
    });
    expect(receipts.map(({ created }) => created)).toEqual([true, false, false]);
    expect(new Set(receipts.map(({ taskId }) => taskId)).size).toBe(1);
  });

  it('R-ST4: another task type, queue or parameters with a known key is a conflict', async () => {
    const { engine } = under();
    const draft: TaskDraft = {
      taskType: 'a',
      queue: 'conflict',
      parameters: { x: 1, y: { p: 2, q: [3] } },
      idempotencyKey: 'conflict',
    };
    const { taskId } = await engine.submit(draft);
    const reordered = { ...draft, parameters: { y: { q: [3], p: 2 }, x: 1 } };
    expect(await engine.submit(reordered)).toMatchObject({ taskId, created: false });
    for (const other of [
      { ...draft, taskType: 'b' },
      { ...draft, queue: 'other' },
      { ...draft, parameters: { x: 1, y: { p: 2, q: [4] } } },
    ]) {
      expect(await refusal(engine.submit(other))).toBe('idempotency_conflict');
    }
  });

  it('R-ST4: a key answers with its ended task for 24 hours, and is free after them', async () => {
    const { engine, clock } = under();
    const draft = { taskType: 'noop', queue: 'expiring', idempotencyKey: 'expiring' };
    const worker = await TestWorker.register(engine, { queues: ['expiring'] });
    const first = await engine.submit(draft);
    await worker.complete(await worker.takeOne());
    expect(await engine.submit(draft)).toMatchObject({
      taskId: first.taskId,
      status: 'completed',
      created: false,
    });
    clock.advance(24 * 3_600_000 - 1);
    expect(await engine.submit(draft)).toMatchObject({ taskId: first.taskId, created: false });
    clock.advance(1);
    const second = await engine.submit(draft);
    expect(second.created).toBe(true);
    expect(second.taskId).not.toBe(first.taskId);
  });
});
