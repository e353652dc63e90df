import { describe, expect, it } from 'vitest';

import type { PushbackPageWire } from '../../src/protocol/pushbacks-schema.js';
import { until } from '../support/until.js';
import { post, useHttp, type Answer, type Call } from './support.js';

describe('R-RE9: a queue whose service pushes back', () => {
  const http = useHttp();
  const call = (request: Call): Promise<Answer> => http().call(request);

  it('says so over HTTP, in its metrics and in explain, and is resumed by hand', async () => {
    const url = '/api/v1/queues/gpt';
    const submitted = { task_type: 'chat', queue: 'gpt', parameters: {} };
    for (let time = 0; time < 3; time += 1) await call(post('/api/v1/tasks', submitted));
    const waiting = await call(post('/api/v1/tasks', submitted));
    const { task_id: taskId } = waiting.json<{ task_id: string }>();
    const worker = await call(post('/internal/workers/register', { capacity: 10 }));
    const { worker_id: workerId } = worker.json<{ worker_id: string }>();
    const poll = await call(
      post(`/internal/workers/${workerId}/poll`, { available_capacity: 3, wait_seconds: 5 }),
    );
    const { tasks } = poll.json<{ tasks: { task_id: string; lease: string }[] }>();
    const error = { code: 'RATE_LIMITED', message: '429', retry_after_seconds: 600 };
    for (const { task_id, lease } of tasks) {
      const result = { task_id, lease, status: 'failed', error };
      await call(post(`/internal/workers/${workerId}/result`, result));
    }

    const { live } = (await call({ url })).json<{ live: Record<string, string> }>();
    expect(live).toMatchObject({
      circuit: 'open',
      paused_why: 'its service says that it gets too many requests',
    });
    const leftMs = Date.parse(live.paused_until ?? '') - Date.now();
    expect(leftMs).toBeGreaterThan(500_000);
    expect(leftMs).toBeLessThan(700_000);
    const explained = await call({ url: `/api/v1/tasks/${taskId}/explain` });
    expect(explained.json()).toMatchObject({
      reasons: [{ kind: 'paused', until: live.paused_until }],
    });
    const pushbacks = await until('the ledger to be written', async () => {
      const page = await call({ url: `${url}/pushbacks?limit=1` });
      const { items, next_cursor: next } = page.json<PushbackPageWire>();
      return items.length === 0 ? null : { items, next };
    });
    expect(pushbacks.items).toMatchObject([
      {
        code: 'RATE_LIMITED',
        message: '429',
        retry_after_ms: 600_000,
        task_type: 'chat',
        worker_id: workerId,
      },
    ]);
    const forecast = await call({ url: `${url}/forecast` });
    expect(forecast.json()).toMatchObject({ queue: 'gpt', waiting: 1 });
    const metrics = await call({ url: '/metrics' });
    expect(metrics.body).toContain('sluice_circuit_state{queue="gpt"} 2');

    const resumed = await call(post(`${url}/resume`));
    expect(resumed.json()).toMatchObject({
      live: { circuit: 'closed', paused_until: null, paused_why: null },
    });
    expect((await call({ url: '/metrics' })).body).toContain('sluice_circuit_state{queue="gpt"} 0');
  });
});
