import { describe, expect, it } from 'vitest';
import type { QueueWire } from '../protocol/queues-schema.js';
import type { AttentionWire, StatisticsWire } from '../protocol/statistics-schema.js';
import { findConcerns, type Situation } from './attention.js';

const none = { depth: 0, oldest_age_seconds: null };
const statistics: StatisticsWire = {
  queues: { high: none, medium: none, low: none },
  running: 0,
  workers: { active: 2, draining: 0, dead: 0, total_capacity: 10, used_capacity: 0 },
  age: { p50_seconds: null, p95_seconds: null, oldest_seconds: null },
  throughput: { completed_last_minute: 0, failed_last_minute: 0, avg_task_duration_seconds: null },
  admission: { active: 0, max_active: 10_000 },
  recovery: { leases_lapsed_last_hour: 0, timeouts_last_hour: 0, reoffered_last_hour: 0 },
};
const quiet: Situation = {
  alerts: [],
  statistics,
  attention: { queues: { items: [], total_count: 0 }, workers: { items: [], total_count: 0 } },
  lastHour: { completed: 1_000, failed: 1, deadLetters: 0 },
  nowMs: Date.parse('2026-01-31T12:00:00Z'),
};
const live: QueueWire['live'] = {
  depth: { high: 0, medium: 3, low: 0 },
  effective_depth: { high: 0, medium: 3, low: 0 },
  backlog: 0,
  active: null,
  running: 0,
  tokens: {},
  next_token_in_ms: null,
  usage: [],
  recovery_factor: 1,
  paused_until: null,
  paused_why: null,
  circuit: 'closed',
  oldest_age_seconds: 5,
  last_minute: { started: 0, completed: 0, failed: 0 },
};
const queue: QueueWire = {
  name: 'gpt-4o',
  version: 1,
  in_force: true,
  limits: [],
  max_concurrency: null,
  max_ready: 10_000,
  max_active: null,
  max_lanes: 10_000,
  paused: false,
  paused_until: null,
  ageing: null,
  live,
};
const worst = (queues: readonly QueueWire[], total = queues.length): AttentionWire => ({
  queues: { items: [...queues], total_count: total },
  workers: { items: [], total_count: 0 },
});
const worker: AttentionWire['workers']['items'][number] = {
  ...{ worker_id: '01900000-0000-7000-8000-000000000001', name: 'w1', host: null, version: null },
  ...{ status: 'active', capabilities: [], task_types: null, queues: null, capacity: 5 },
  ...{ current_load: 0, available_capacity: 5, memory_usage: null, event_loop_delay_ms: null },
  ...{ cpu_usage: null, consecutive_failures: 9, drain_requested_at: null },
  ...{ registered_at: '2026-01-31T11:00:00Z', last_heartbeat_at: '2026-01-31T12:00:00Z' },
  benched_until: '2026-01-31T12:05:00Z',
};
const textsOf = (situation: Partial<Situation>) =>
  findConcerns({ ...quiet, ...situation }).map(({ severity, text }) => `${severity}: ${text}`);

describe('what needs attention', () => {
  it('is nothing while all is well', () => {
    expect(textsOf({})).toEqual([]);
  });

  it('names what stands still, and why', () => {
    const open = {
      ...live,
      circuit: 'open' as const,
      paused_why: 'its service is not available',
      paused_until: '2026-01-31T12:00:30Z',
    };
    expect(
      textsOf({
        attention: worst([
          { ...queue, paused: true },
          { ...queue, name: 'claude', live: open },
          { ...queue, name: 'slow', live: { ...live, oldest_age_seconds: 900 } },
          { ...queue, name: 'back', live: { ...live, circuit: 'half_open' } },
        ]),
      }),
    ).toEqual([
      'bad: claude is stopped by its circuit: its service is not available; it is tried again in 30 s.',
      'warn: gpt-4o is paused and 3 tasks wait in it.',
      'warn: The oldest task of slow has waited for 15 min.',
      'warn: back recovers: its service pushed back a while ago.',
    ]);
  });

  it('says that nobody works, that much fails, and that it is full', () => {
    expect(
      textsOf({
        statistics: {
          ...statistics,
          queues: { ...statistics.queues, low: { depth: 1, oldest_age_seconds: 1 } },
          workers: { ...statistics.workers, active: 0 },
          admission: { active: 9_000, max_active: 10_000 },
        },
        lastHour: { completed: 90, failed: 10, deadLetters: 1 },
      }),
    ).toEqual([
      'bad: 1 task waits and there is no worker.',
      'bad: 10 % of the attempts of the last hour failed (10 of 100).',
      'warn: 1 task ended as a dead letter in the last hour.',
      'warn: 9,000 tasks are active; from 10,000 on submits are refused.',
    ]);
  });

  it('begins with what the server itself calls critical', () => {
    const alerts = [
      { severity: 'warning', summary: 'Wait times grow.' },
      { severity: 'critical', summary: 'Nothing progresses.' },
    ] as const;
    expect(textsOf({ alerts })).toEqual(['bad: Nothing progresses.', 'warn: Wait times grow.']);
  });

  it('of many queues names five', () => {
    const many = Array.from({ length: 20 }, (_, n) => ({ ...queue, name: `q${n}`, paused: true }));
    const texts = textsOf({ attention: worst(many, 4_000) });
    expect(texts).toHaveLength(6);
    expect(texts.at(-1)).toBe('warn: 3,995 more queues are paused, stopped or slow.');
  });

  it('of many alerts names five, the critical ones first, and counts the others', () => {
    const alerts = Array.from({ length: 8 }, (_, n) => ({
      severity: n === 7 ? ('critical' as const) : ('warning' as const),
      summary: `rule ${n}`,
    }));
    const texts = textsOf({ alerts });
    expect(texts[0]).toBe('bad: rule 7');
    expect(texts.at(-1)).toBe('warn: 3 more alerts fire.');
  });

  it('says when a suspended worker gets tasks again', () => {
    const attention = { ...worst([]), workers: { items: [worker], total_count: 3 } };
    expect(textsOf({ attention })).toEqual([
      'warn: Worker w1 fails where others succeed; it gets tasks again in 5 min.',
      'warn: 2 more workers are suspended.',
    ]);
  });
});
