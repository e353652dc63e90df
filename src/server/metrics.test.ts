import { describe, expect, it } from 'vitest';
import { instantOf, type TaskId } from '../domain/ids.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import type { TaskEvent } from '../protocol/events.js';
import { lintMetrics } from '../../test/support/services/promtool.js';
import type { QueueView } from '../protocol/queues-api.js';
import type { Scaling } from '../protocol/scaling-api.js';
import type { Statistics } from '../protocol/statistics-api.js';
import { createMetrics } from './metrics.js';

const statistics: Statistics = {
  queues: {
    high: { depth: 0, oldestAgeSeconds: null },
    medium: { depth: 3, oldestAgeSeconds: 45 },
    low: { depth: 0, oldestAgeSeconds: null },
  },
  workers: { active: 2, draining: 1, dead: 0, totalCapacity: 10, usedCapacity: 4 },
  age: { p50Seconds: 1, p95Seconds: 2, oldestSeconds: 45 },
  throughput: { completedLastMinute: 0, failedLastMinute: 0, avgTaskDurationSeconds: null },
  admission: { active: 7, maxActive: 100 },
  recovery: { leasesLapsedLastHour: 0, timeoutsLastHour: 0, reofferedLastHour: 0 },
};

const scaling: Scaling = {
  ...{ desired: 3, current: 1, min: 0, max: 10, waiting: 9, reason: '', queues: [] },
  provisioner: { kind: 'none', lastAskedAt: null, failingSince: null, error: null },
};

const queueNamed = (name: string): QueueView => ({
  name,
  version: 1,
  inForce: true,
  settings: defaultQueueSettings,
  live: {
    depth: { high: 0, medium: 3, low: 0 },
    effectiveDepth: { high: 0, medium: 3, low: 0 },
    backlog: 0,
    active: null,
    running: 4,
    tokens: { requests: 7 },
    nextTokenInMs: null,
    usage: [],
    recoveryFactor: 1,
    pausedUntil: null,
    pausedWhy: null,
    circuit: 'open',
    oldestAgeSeconds: 45,
    lastMinute: { started: 0, completed: 0, failed: 0 },
  },
});

/** What is scraped after these events. */
async function scrape(events: readonly Partial<TaskEvent>[], queues = ['q']): Promise<string> {
  let tell: (event: TaskEvent) => void = () => undefined;
  const items = queues.map(queueNamed);
  const metrics = createMetrics(
    {
      getStatistics: async () => statistics,
      getScaling: async () => scaling,
      listQueues: async ({ cursor, limit = 10 } = {}) => {
        const start = Number(cursor ?? 0);
        const end = start + Math.min(limit, 400);
        return {
          items: items.slice(start, end),
          nextCursor: end < items.length ? String(end) : null,
        };
      },
    },
    {
      subscribe: (listener) => {
        tell = listener;
        return () => undefined;
      },
    },
    () => ({ max_active: 3, queue_max_active: 0 }),
  );
  for (const event of events) tell({ ...claimed, ...event });
  return metrics.text();
}

const claimed: TaskEvent = {
  taskId: '0197f0c4-8a3b-7c21-9d55-3f0f5a1c2b3d' as TaskId,
  queue: 'q',
  taskType: 'chat',
  priority: 'low',
  from: 'queued',
  to: 'executing',
  at: new Date(0),
  attempt: 1,
};

describe('OB1: metrics', () => {
  it('counts transitions, waits and promotions', async () => {
    const text = await scrape([{ waitMs: 1_500, effectivePriority: 'high' }, { waitMs: 10 }]);
    expect(text).toContain('sluice_task_state_transitions_total{from="queued",to="executing"} 2');
    expect(text).toContain('sluice_tasks_total{status="executing",queue="q",task_type="chat"} 2');
    expect(text).toContain('sluice_tasks_promoted_total{from="low",to="high"} 1');
    expect(text).toContain(
      'sluice_task_wait_seconds_sum{priority="low",queue="q",task_type="chat"} 1.51',
    );
  });

  it('counts what costs a retry, and not what does not', async () => {
    const back = { from: 'executing', to: 'pending' } as const;
    const text = await scrape([
      { ...back, outcome: 'failed', errorCode: 'UNAVAILABLE', durationMs: 2_000 },
      { ...back, outcome: 'timed_out', errorCode: 'TIMEOUT' },
      { ...back, outcome: 'lapsed', errorCode: 'WORKER_LOST' },
      { ...back, outcome: 'released' },
      { ...back, outcome: 'deferred', errorCode: 'RATE_LIMITED' },
    ]);
    const retries = text.match(/^sluice_task_retries_total.*/gm);
    expect(retries).toEqual([
      'sluice_task_retries_total{priority="low",reason="UNAVAILABLE"} 1',
      'sluice_task_retries_total{priority="low",reason="TIMEOUT"} 1',
      'sluice_task_retries_total{priority="low",reason="WORKER_LOST"} 1',
    ]);
    expect(text).toContain('sluice_leases_lapsed_total 1');
    expect(text).toContain('sluice_task_timeouts_total 1');
    expect(text).toContain(
      'sluice_task_execution_seconds_sum{priority="low",status="failed",queue="q",task_type="chat"} 2',
    );
  });

  it('tells how long tasks took from submit to end', async () => {
    const at = new Date(instantOf(claimed.taskId) + 2_500);
    const text = await scrape([
      { at, from: 'executing', to: 'completed', outcome: 'succeeded', durationMs: 500 },
      { at, from: 'executing', to: 'pending', outcome: 'failed', durationMs: 500 },
    ]);
    expect(text.match(/^sluice_task_duration_seconds_sum.*/gm)).toEqual([
      'sluice_task_duration_seconds_sum{priority="low",status="completed",queue="q",task_type="chat"} 2.5',
    ]);
  });

  it('bounds its labels: codes of users and queues without end', async () => {
    const dead = { from: 'executing', to: 'dead_letter', outcome: 'failed' } as const;
    const names = Array.from({ length: 1_200 }, (_, index) => `q${index}`);
    const text = await scrape(
      [
        { ...dead, errorCode: 'USER-17' },
        { ...dead, errorCode: 'USER-18' },
      ],
      names,
    );
    expect(text).toContain('sluice_tasks_failed_total{priority="low",reason="other"} 2');
    expect(text).toContain('sluice_tasks_dlq_total{reason="other"} 2');
    expect(text.match(/^sluice_queue_running_tasks\{/gm)).toHaveLength(1_000);
  });

  it('bounds its labels: queues and task types without end are counted as others', async () => {
    const names = Array.from({ length: 300 }, (_, index) => ({ taskType: `t${index}`, waitMs: 1 }));
    const text = await scrape([...names, { taskType: 't0' }, { taskType: 't299' }]);
    const counts = text.match(/^sluice_tasks_total\{.*/gm) ?? [];
    expect(counts).toHaveLength(101);
    expect(counts[0]).toMatch(/task_type="t0"\} 2$/);
    expect(counts[100]).toMatch(/queue="other",task_type="other"\} 201$/);
    expect(text.match(/^sluice_task_wait_seconds_count/gm)).toHaveLength(101);
  });

  it('passes the rules of promtool', async () => {
    const text = await scrape([
      { waitMs: 1, effectivePriority: 'high' },
      { from: 'executing', to: 'dead_letter', outcome: 'failed', durationMs: 1 },
    ]);
    expect(lintMetrics(text)).toBe('');
  });

  it('reads gauges when it is scraped', async () => {
    const text = await scrape([]);
    expect(text).toContain('sluice_queue_depth{queue="q",priority="medium"} 3');
    expect(text).toContain('sluice_queue_running_tasks{queue="q"} 4');
    expect(text).toContain('sluice_limit_tokens{queue="q",unit="requests"} 7');
    expect(text).toContain('sluice_circuit_state{queue="q"} 2');
    expect(text).toContain('sluice_queue_age_seconds{priority="medium"} 45');
    expect(text).toContain('sluice_workers{status="draining"} 1');
    expect(text).toContain('sluice_worker_capacity_used_ratio 0.4');
    expect(text).toContain('sluice_scaling_desired_workers 3');
  });

  it('R-AD3: tells how many are active, and how many submits were refused and why', async () => {
    const text = await scrape([]);
    expect(text).toContain('sluice_active_tasks 7');
    expect(text).toContain('sluice_admission_rejected_total{reason="max_active"} 3');
    expect(text).toContain('sluice_admission_rejected_total{reason="queue_max_active"} 0');
  });
});
