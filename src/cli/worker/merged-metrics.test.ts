import { expect, it } from 'vitest';
import { createWorkerMetrics } from '../../worker/metrics.js';
import { MergedMetrics } from './merged-metrics.js';

async function snapshot(completed: number, inFlight: number) {
  const metrics = await createWorkerMetrics([{ type: 'chat' }]);
  metrics.watch({ inFlight, capacity: 10 });
  for (let i = 0; i < completed; i += 1) metrics.observer.ended('chat', 'completed', 0.1);
  return metrics.registry.getMetricsAsJSON();
}

const count = 'sluice_worker_tasks_completed_total{task_type="chat",status="completed"}';
const buckets =
  'sluice_worker_task_duration_seconds_bucket{le="0.1",task_type="chat",status="completed"}';

it('R-OB1: the metrics of processes are summed', async () => {
  const text = await new MergedMetrics().text([await snapshot(2, 1), await snapshot(3, 4)]);
  const lines = text.split('\n');
  expect(lines).toContain(`${count} 5`);
  expect(lines).toContain(`${buckets} 5`);
  expect(lines).toContain('sluice_worker_in_flight_tasks 5');
  expect(lines).toContain('sluice_worker_capacity_tasks 20');
});

it('R-OB1: what a process that is gone had counted stays, what it had in flight does not', async () => {
  const merged = new MergedMetrics();
  merged.depart(await snapshot(2, 1));
  merged.depart(await snapshot(4, 1));
  const lines = (await merged.text([await snapshot(3, 4)])).split('\n');
  expect(lines).toContain(`${count} 9`);
  expect(lines).toContain(`${buckets} 9`);
  expect(lines).toContain('sluice_worker_in_flight_tasks 4');
});
