import { describe, expect, it } from 'vitest';

import { SluiceError } from '../domain/errors.js';
import type { SluiceApi } from '../protocol/api.js';
import type { SubmitOutcome, TaskDraft } from '../protocol/tasks-api.js';
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

describe('submitted one by one, far away', () => {
  const far = (calls: Calls) => new SluiceClient(calls.api, async () => undefined);
  const submitting = (client: SluiceClient, from: number, count: number) =>
    Array.from({ length: count }, (_, index) => client.submit(task, { n: from + index }));
  const sizes = ({ drafts }: Calls) => drafts.map(({ length }) => length);

  it('R-LA3: those that come together go in one call, and each hears of its own', async () => {
    const calls = new Calls();
    const submits = submitting(far(calls), 0, 50);
    expect(await calls.made()).toBe(1);
    expect(sizes(calls)).toEqual([50]);
    calls.settle[0]?.accept();
    const ids = (await Promise.all(submits)).map(({ id }) => id);
    expect(ids).toEqual(Array.from({ length: 50 }, (_, n) => `task ${n}`));
  });

  it('R-LA3: a call that takes long holds up the next ones only when many do', async () => {
    const calls = new Calls();
    const client = far(calls);
    const submits = [];
    for (let n = 0; n < 6; n++) {
      submits.push(...submitting(client, n, 1));
      await calls.made();
    }
    expect(sizes(calls)).toEqual([1, 1, 1, 1]);
    calls.settle[2]?.accept();
    await expect(submits[2]).resolves.toMatchObject({ id: 'task 2' });
    await calls.made();
    expect(sizes(calls)).toEqual([1, 1, 1, 1, 2]);
    for (const { accept } of calls.settle) accept();
    await Promise.all(submits);
  });

  it('large ones go in calls of their own: what each could send alone, it can send with others', async () => {
    const calls = new Calls();
    const large = defineTask({ type: 'large', run: ({ text }: { text: string }) => text });
    const client = far(calls);
    const submits = [300_000, 100_000, 100_000, 100_000].map((length) =>
      client.submit(large, { text: 'x'.repeat(length) }),
    );
    expect(await calls.made()).toBe(3);
    expect(sizes(calls)).toEqual([1, 2, 1]);
    for (const { accept } of calls.settle) accept();
    await Promise.all(submits);
  });

  it('nothing is sent again when a call fails: all of it fails', async () => {
    const calls = new Calls();
    const submits = submitting(far(calls), 0, 3);
    await calls.made();
    calls.settle[0]?.fail();
    const settled = await Promise.allSettled(submits);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(await calls.made()).toBe(1);
  });
});
