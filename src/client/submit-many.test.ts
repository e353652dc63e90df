import { expect, it } from 'vitest';

import { SluiceError } from '../domain/errors.js';
import type { SluiceApi, SubmitOutcome, TaskDraft } from '../protocol/api.js';
import { defineTask } from './define-task.js';
import { overlapping, SluiceClient } from './sluice-client.js';

const task = defineTask({ type: 'count', run: ({ n }: { n: number }) => n });
const inputs = (count: number) => Array.from({ length: count }, (_, n) => ({ input: { n } }));

/** Calls that are answered when the test says so. */
class Calls {
  readonly drafts: TaskDraft[][] = [];
  readonly settle: { accept: () => void; fail: () => void }[] = [];

  readonly api = {
    submitMany: (drafts: TaskDraft[]) => {
      this.drafts.push(drafts);
      return new Promise<SubmitOutcome[]>((resolve, reject) => {
        this.settle.push({
          accept: () => resolve(drafts.map(accepted)),
          fail: () => reject(new SluiceError('unavailable', 'Postgres is away')),
        });
      });
    },
  } as unknown as SluiceApi;

  /** As many as come before somebody has to wait. */
  async made(): Promise<number> {
    await new Promise((resolve) => setImmediate(resolve));
    return this.drafts.length;
  }
}

function accepted({ parameters }: TaskDraft): SubmitOutcome {
  const receipt = { taskId: `task ${JSON.stringify(parameters?.n)}` };
  return { kind: 'accepted', receipt } as SubmitOutcome;
}

function clientOf(calls: Calls, pace = overlapping): SluiceClient {
  return new SluiceClient(calls.api, async () => undefined, pace);
}

it('R-CH8: of many tasks the next calls are made while the last are under way, in order', async () => {
  const calls = new Calls();
  const submitting = clientOf(calls).submitMany(task, inputs(4_500));
  expect(await calls.made()).toBe(3);
  calls.settle[1]?.accept();
  expect(await calls.made()).toBe(3);
  calls.settle[0]?.accept();
  expect(await calls.made()).toBe(5);
  for (const { accept } of calls.settle) accept();
  const submitted = await submitting;
  expect(submitted.map((one) => one.kind === 'accepted' && one.handle.id)).toEqual(
    Array.from({ length: 4_500 }, (_, n) => `task ${String(n)}`),
  );
  expect(calls.drafts.map(({ length }) => length)).toEqual([1_000, 1_000, 1_000, 1_000, 500]);
});

it('R-CH8: after a failure nothing more is sent, and what was sent is waited for', async () => {
  const calls = new Calls();
  let hasEnded = false;
  const submitting = clientOf(calls)
    .submitMany(task, inputs(5_000))
    .finally(() => (hasEnded = true));
  const outcome = expect(submitting).rejects.toThrow('Postgres is away');
  expect(await calls.made()).toBe(3);
  calls.settle[1]?.fail();
  calls.settle[0]?.accept();
  expect(await calls.made()).toBe(3);
  expect(hasEnded).toBe(false);
  calls.settle[2]?.accept();
  await outcome;
  expect(await calls.made()).toBe(3);
});

it('R-CH8: far away, where calls may overtake one another, they are made one by one', async () => {
  const calls = new Calls();
  const client = new SluiceClient(calls.api, async () => undefined);
  const submitting = client.submitMany(task, inputs(6_000));
  expect(await calls.made()).toBe(1);
  calls.settle[0]?.accept();
  expect(await calls.made()).toBe(2);
  calls.settle[1]?.accept();
  expect(await submitting).toHaveLength(6_000);
});
