import { describe, expect, it } from 'vitest';
import { alertNames, ruleOf } from '../domain/alerts/rules.js';
import { instantOf, type TaskId } from '../domain/ids.js';
import { priorities } from '../domain/priority.js';
import { transitions } from '../domain/task-state.js';
import type { TaskEvent } from '../protocol/events.js';
import { lintMetrics } from '../../test/support/services/promtool.js';
import type { Scaling } from '../protocol/scaling-api.js';
import { AgeSketch } from '../domain/age-sketch.js';
import type { QueueLine } from '../engine/line.js';
import type { Measured } from '../engine/measurements.js';
import { Tallies } from '../engine/tallies.js';
import { Throttling } from '../engine/throttling.js';
import type { Waiting } from '../ready/ready-queue.js';
import { createMetrics } from './metrics.js';

const nothing: Waiting = { count: 0, oldestAgeMs: null };
const three: Waiting = { count: 3, oldestAgeMs: 45_000 };

const busy: QueueLine = {
  depth: { high: 0, medium: 1, low: 2 },
  waiting: { high: nothing, medium: three, low: nothing },
  backlog: 0,
  running: 4,
  heldBackBy: null,
};

function measuredWith(queues: readonly string[]): Measured {
  const ages = { high: new AgeSketch(), medium: new AgeSketch(), low: new AgeSketch() };
  for (const ageMs of [1_000, 2_000, 45_000]) ages.medium.add(ageMs, 1);
  return {
    line: {
      queues: new Map(queues.map((name) => [name, busy])),
      ages,
      total: { high: { count: 2, oldestAgeMs: 1_000 }, medium: three, low: nothing },
      running: 4,
      isWhole: true,
    },
    states: { pending: 1, queued: 5, assigned: 0, executing: 4, dead_letter: 2, failed: 0 },
    workers: { active: 2, draining: 1, dead: 0, totalCapacity: 10, usedCapacity: 4 },
    suspendedWorkers: 1,
    active: 7,
  };
}

const scaling: Scaling = {
  ...{ desired: 3, current: 1, min: 0, max: 10, waiting: 9, reason: '', queues: [] },
  provisioner: { kind: 'none', lastAskedAt: null, failingSince: null, error: null },
};

/** What is scraped after these events. */
async function scrape(events: readonly Partial<TaskEvent>[], queues = ['q']): Promise<string> {
  let tell: (event: TaskEvent) => void = () => undefined;
  const metrics = createMetrics(
    {
      getScaling: async () => scaling,
      tallies: new Tallies(),
      measurements: {
        throttling: new Throttling(),
        get: async () => measuredWith(queues),
        configured: () => new Set(['q']),
        lookAt: async (names) =>
          new Map([...names].map((name) => [name, { tokens: { requests: 7 }, circuit: 'open' }])),
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
    const retries = text.match(/^sluice_task_retries_total.* [1-9].*/gm);
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
    const names = Array.from({ length: 10_000 }, (_, index) => `q${index}`);
    const text = await scrape(
      [
        { ...dead, errorCode: 'USER-17' },
        { ...dead, errorCode: 'USER-18' },
      ],
      names,
    );
    expect(text).toContain('sluice_tasks_failed_total{priority="low",reason="other"} 2');
    expect(text).toContain('sluice_tasks_dlq_total{reason="other"} 2');
    expect(text.match(/^sluice_queue_running_tasks\{/gm)).toHaveLength(201);
    expect(text).toContain('sluice_queue_depth{queue="q",priority="medium"} 0');
    expect(text).toContain('sluice_queue_depth{queue="(other)",priority="medium"} 29403');
    expect(text.length).toBeLessThan(200_000);
  });

  it('bounds its labels: queues and task types without end are counted as others', async () => {
    const names = Array.from({ length: 300 }, (_, index) => ({ taskType: `t${index}`, waitMs: 1 }));
    const text = await scrape([...names, { taskType: 't0' }, { taskType: 't299' }]);
    const counts = text.match(/^sluice_tasks_total\{.*/gm) ?? [];
    expect(counts).toHaveLength(101);
    expect(counts[0]).toMatch(/task_type="t0"\} 2$/);
    expect(counts[100]).toMatch(/queue="\(other\)",task_type="\(other\)"\} 201$/);
    expect(text.match(/^sluice_task_wait_seconds_count/gm)).toHaveLength(21);
  });

  it('R-OB1: a queue that is called other is not one of the others', async () => {
    const names = Array.from({ length: 300 }, (_, index) => `q${index}`);
    const text = await scrape([{ queue: 'other', taskType: 'other' }], ['other', ...names]);
    expect(text).toContain('sluice_queue_depth{queue="other",priority="medium"} 3\n');
    expect(text).toContain('status="executing",queue="other",task_type="other"} 1\n');
  });

  it('R-OB3: what rules see grow is there with 0 before the first task, so that a first burst counts', async () => {
    const text = await scrape([]);
    const twins = alertNames.map((name) => ruleOf(name).twin(1)).join(' ');
    const grown = [...twins.matchAll(/increase\(([a-z_]+)(?:\{([^}]*)\})?\[/g)];
    expect(grown.length).toBeGreaterThan(5);
    for (const [, name = '', label = ''] of grown) {
      const series = text.split('\n').filter((line) => /^[a-z_]+/.exec(line)?.[0] === name);
      const zeros = series.filter((line) => line.includes(label) && line.endsWith(' 0'));
      expect(zeros, name).not.toEqual([]);
    }
    for (const reason of ['TIMEOUT', 'UNAVAILABLE', 'other']) {
      expect(text).toContain(`sluice_tasks_dlq_total{reason="${reason}"} 0\n`);
      for (const priority of priorities) {
        const labels = `priority="${priority}",reason="${reason}"`;
        expect(text).toContain(`sluice_tasks_failed_total{${labels}} 0\n`);
        expect(text).toContain(`sluice_task_retries_total{${labels}} 0\n`);
      }
    }
    for (const { from, to } of transitions) {
      expect(text).toContain(`sluice_task_state_transitions_total{from="${from}",to="${to}"} 0\n`);
    }
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
    expect(text).toContain('sluice_queue_age_seconds{priority="medium",quantile="1"} 45');
    expect(text).toMatch(/sluice_queue_age_seconds\{priority="medium",quantile="0.5"\} (1.9|2)/);
    expect(text).toContain('sluice_queue_age_seconds_count{priority="medium"} 3');
    expect(text).toContain('sluice_task_state_tasks{status="dead_letter"} 2');
    expect(text).toContain('sluice_starvation_risk_tasks 2');
    expect(text).toContain('sluice_workers_suspended 1');
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
