import { describe, expect, it } from 'vitest';
import { lintMetrics } from '../../test/support/services/promtool.js';
import { createWorkerMetrics } from './metrics.js';

const read = async ({
  registry,
}: Awaited<ReturnType<typeof createWorkerMetrics>>): Promise<string[]> =>
  (await registry.metrics()).split('\n');

describe('R-OB1: the metrics of a worker', () => {
  it('counts attempts by type and status, and how long they ran', async () => {
    const metrics = await createWorkerMetrics([{ type: 'chat' }]);
    metrics.observer.ended('chat', 'completed', 0.02);
    metrics.observer.ended('chat', 'completed', 400);
    metrics.observer.ended('chat', 'failed', 1);
    const lines = await read(metrics);
    expect(lines).toContain(
      'sluice_worker_tasks_completed_total{task_type="chat",status="completed"} 2',
    );
    expect(lines).toContain(
      'sluice_worker_tasks_completed_total{task_type="chat",status="failed"} 1',
    );
    expect(lines).toContain(
      'sluice_worker_task_duration_seconds_bucket{le="0.05",task_type="chat",status="completed"} 1',
    );
    expect(lines).toContain(
      'sluice_worker_task_duration_seconds_bucket{le="900",task_type="chat",status="completed"} 2',
    );
  });

  it('passes the rules of promtool', async () => {
    const metrics = await createWorkerMetrics([{ type: 'chat' }]);
    metrics.observer.ended('chat', 'completed', 0.02);
    metrics.observer.claimed(50, 3);
    expect(lintMetrics(await metrics.registry.metrics())).toBe('');
  });

  it('a type without a handler here is one label, whatever its name', async () => {
    const metrics = await createWorkerMetrics([{ type: 'chat' }]);
    for (const stray of ['a', 'b', 'c']) metrics.observer.ended(stray, 'failed', 0);
    expect(await read(metrics)).toContain(
      'sluice_worker_tasks_completed_total{task_type="(other)",status="failed"} 3',
    );
  });

  it('counts polls for tasks, what they asked for and what they claimed, not polls for news', async () => {
    const metrics = await createWorkerMetrics([]);
    metrics.observer.claimed(50, 3);
    metrics.observer.claimed(2, 0);
    metrics.observer.claimed(0, 0);
    const lines = await read(metrics);
    expect(lines).toContain('sluice_worker_claims_total{result="tasks"} 1');
    expect(lines).toContain('sluice_worker_claims_total{result="empty"} 1');
    expect(lines).toContain('sluice_worker_claim_request_size_bucket{le="2"} 1');
    expect(lines).toContain('sluice_worker_claim_request_size_sum 52');
    expect(lines).toContain('sluice_worker_claim_size_sum 3');
    expect(lines).toContain('sluice_worker_claim_size_count 1');
  });

  it('reads the load when asked, of all workers of the process', async () => {
    const metrics = await createWorkerMetrics([]);
    expect(await read(metrics)).toContain('sluice_worker_in_flight_tasks 0');
    const load = { inFlight: 1, capacity: 5 };
    metrics.watch(load);
    metrics.watch({ inFlight: 10, capacity: 20 });
    load.inFlight = 2;
    const lines = await read(metrics);
    expect(lines).toContain('sluice_worker_in_flight_tasks 12');
    expect(lines).toContain('sluice_worker_capacity_tasks 25');
  });
});
