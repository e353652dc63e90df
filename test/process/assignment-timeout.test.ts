import { expect, it, onTestFinished } from 'vitest';

import { createTestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { TestServer } from './servers.js';

it('R-OB13: --assignment-timeout-seconds takes a task from a worker that does not start it in time', async () => {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  const { api } = await TestServer.start(url, null, {}, ['--assignment-timeout-seconds', '3']);
  const { taskId } = await api.submit({ taskType: 'call' });
  const { workerId } = await api.register({ capacity: 1 });
  const { tasks } = await api.poll(workerId, {
    availableCapacity: 1,
    prefetch: true,
    waitMs: 5_000,
  });
  expect(tasks).toMatchObject([{ taskId }]);
  // By default it would stay with its worker for 30 s, and it was not started.
  const task = await until('the task to come back', async () => {
    const view = await api.getTask(taskId);
    return view.returns > 0 ? view : null;
  });
  expect(task).toMatchObject({ returns: 1, retryCount: 0 });
  const [attempt] = (await api.getTask(taskId, { history: true })).history?.attempts ?? [];
  expect(attempt).toMatchObject({ outcome: 'released', error: { code: 'NEVER_STARTED' } });
  const heldMs = (attempt?.endedAt.getTime() ?? 0) - (attempt?.startedAt.getTime() ?? 0);
  expect(heldMs).toBeGreaterThanOrEqual(3_000);
  expect(heldMs).toBeLessThan(30_000);
});
