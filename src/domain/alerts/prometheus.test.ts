import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runPromtool } from '../../../test/support/services/promtool.js';
import { prometheusName, prometheusRules } from './prometheus.js';
import { alertNames, ruleOf, type AlertName } from './rules.js';

/** A value in each of three times: not beyond the threshold, beyond it, and well again. */
type Phases = readonly [almost: number, bad: number, well: number];

interface Scraped {
  /** Every server exports them: two do. */
  readonly gauges?: Readonly<Record<string, Phases>>;
  /** How much they grow in 15 seconds. */
  readonly counters?: Readonly<Record<string, Phases>>;
}

const workers = (count: number): Phases => [count, count, count];
const depth = (queue: string, priority = 'medium') =>
  `sluice_queue_depth{queue="${queue}",priority="${priority}"}`;
const completed = 'sluice_task_state_transitions_total{from="executing",to="completed"}';
const retried = 'sluice_task_retries_total{priority="low",reason="X"}';
const ended = 'sluice_tasks_failed_total{priority="low",reason="X"}';
const active = 'sluice_workers{status="active"}';

const scraped: Readonly<Record<AlertName, Scraped>> = {
  high_priority_depth: {
    gauges: { [depth('a', 'high')]: [1_000, 1_001, 0], [depth('a')]: [9_000, 9_000, 9_000] },
  },
  high_priority_wait: { gauges: { 'sluice_oldest_waiting_seconds{priority="high"}': [60, 61, 0] } },
  low_priority_wait: {
    gauges: { 'sluice_oldest_waiting_seconds{priority="low"}': [1_500, 1_501, 0] },
  },
  ageing_promise_broken: { gauges: { sluice_starvation_risk_tasks: [0, 1, 0] } },
  task_waiting_long: {
    gauges: { 'sluice_oldest_waiting_seconds{priority="medium"}': [3_600, 3_601, 0] },
  },
  age_p95: { gauges: { sluice_waiting_p95_seconds: [600, 601, 0] } },
  queue_depth: { gauges: { [depth('a')]: [5_000, 5_001, 0], [depth('b')]: [4_000, 4_000, 4_000] } },
  total_depth: {
    gauges: { [depth('a')]: [25_000, 25_001, 0], [depth('b')]: [25_000, 25_000, 25_000] },
  },
  completion_rate_drop: {
    gauges: { [depth('a')]: [1, 1, 1] },
    counters: { [completed]: [10, 0, 10] },
  },
  no_progress: { gauges: { sluice_unclaimed_seconds: [60, 61, 0] } },
  schedule_missed: { gauges: { sluice_scheduled_late_seconds: [60, 61, 0] } },
  failure_rate: { counters: { [retried]: [1, 2, 0], [ended]: [1, 1, 0], [completed]: [7, 7, 7] } },
  failure_rate_elevated: { counters: { [retried]: [1, 2, 0], [completed]: [10, 10, 10] } },
  retry_rate: { counters: { [retried]: [1, 2, 0], [completed]: [8, 8, 8] } },
  circuits_open: {
    gauges: {
      ...Object.fromEntries(
        [1, 2, 3, 4, 5].map((n) => [`sluice_circuit_state{queue="${n}"}`, [2, 2, 0]] as const),
      ),
      'sluice_circuit_state{queue="6"}': [1, 2, 0],
    },
  },
  assignment_timeouts: { counters: { sluice_task_assignment_timeouts_total: [1, 2, 0] } },
  leases_lapsed: { counters: { sluice_leases_lapsed_total: [0.2, 1, 0] } },
  idempotency_conflicts: { gauges: { sluice_recent_idempotency_conflicts: [0, 1, 0] } },
  webhook_undeliverable: { gauges: { sluice_webhook_failing_seconds: [300, 301, 0] } },
  dead_letter_rate: { counters: { 'sluice_tasks_dlq_total{reason="X"}': [2, 3, 0] } },
  dead_letter_new_pattern: { gauges: { sluice_dead_letter_new_patterns: [0, 1, 0] } },
  dead_letters_replayable: { gauges: { sluice_dead_letters_replayable: [100, 101, 0] } },
  dead_letters_one_reason: { gauges: { 'sluice_dead_letters{reason="X"}': [50, 51, 0] } },
  no_active_worker: { gauges: { [depth('a')]: [3, 3, 3], [active]: [1, 0, 1] } },
  utilisation: { gauges: { sluice_worker_capacity_used_ratio: [0.9, 0.91, 0.5] } },
  idle_workers_low: { gauges: { sluice_workers_idle: [1, 0, 5], [active]: workers(5) } },
  worker_failures: {
    gauges: {
      sluice_workers_lost: [1, 2, 0],
      [active]: workers(3),
      'sluice_workers{status="draining"}': workers(1),
    },
  },
  workers_suspended: { gauges: { sluice_workers_suspended: [1, 2, 0], [active]: workers(10) } },
  scale_out_requested: { gauges: { sluice_scaling_missing_workers: [0, 1, 0] } },
  scale_out_failing: { gauges: { sluice_scaling_failing_seconds: [60, 61, 0] } },
};

/** Minutes of each phase, and how many scrapes of 15 seconds that are. */
const minutes = [6, 16, 16] as const;
const scrapes = minutes.map((each) => each * 4);
/** Just before each phase ends, and just before it has lasted for as long as its rule says. */
function looksOf(name: AlertName): readonly { eval_time: string; isFiring: boolean }[] {
  const { forSeconds } = ruleOf(name);
  const [beginsAtMinute] = minutes;
  const almost = { eval_time: `${beginsAtMinute * 60 + forSeconds - 30}s`, isFiring: false };
  return [
    { eval_time: '5m', isFiring: false },
    ...(forSeconds === 0 ? [] : [almost]),
    { eval_time: '21m', isFiring: true },
    { eval_time: '37m', isFiring: false },
  ];
}

function gaugeValues(phases: Phases): string {
  return phases.map((value, phase) => `${value}+0x${(scrapes[phase] ?? 0) - 1}`).join(' ');
}

function counterValues(phases: Phases): string {
  let sum = 0;
  return phases
    .map((growth, phase) => {
      const count = scrapes[phase] ?? 0;
      const begins = sum;
      sum += growth * count;
      return `${begins}+${growth}x${count - 1}`;
    })
    .join(' ');
}

function withLabel(series: string, label: string): string {
  return series.endsWith('}') ? series.replace(/\}$/, `,${label}}`) : `${series}{${label}}`;
}

function testOf(name: AlertName): object {
  const { gauges = {}, counters = {} } = scraped[name];
  const firing = `ALERTS{alertname="${prometheusName(name)}",alertstate="firing"}`;
  return {
    name,
    interval: '15s',
    input_series: [
      ...Object.entries(gauges).flatMap(([series, phases]) =>
        ['1', '2'].map((server) => ({
          series: withLabel(series, `instance="${server}"`),
          values: gaugeValues(phases),
        })),
      ),
      ...Object.entries(counters).map(([series, phases]) => ({
        series: withLabel(series, 'instance="1"'),
        values: counterValues(phases),
      })),
    ],
    promql_expr_test: looksOf(name).map(({ eval_time, isFiring }) => ({
      expr: `count(${firing}) or vector(0)`,
      eval_time,
      exp_samples: [{ labels: '{}', value: isFiring ? 1 : 0 }],
    })),
  };
}

/** A series that begins in the fourth minute, as a server exports it first, and grows a minute later in one scrape. */
function burstTest(name: AlertName, series: string, growth: number): object {
  const firing = `ALERTS{alertname="${prometheusName(name)}",alertstate="firing"}`;
  return {
    name: `${name}, first burst`,
    interval: '15s',
    input_series: [{ series: withLabel(series, 'instance="1"'), values: `_x15 0x4 ${growth}x40` }],
    promql_expr_test: [
      { eval_time: '4m', value: 0 },
      { eval_time: '5m30s', value: 1 },
      { eval_time: '14m', value: 0 },
    ].map(({ eval_time, value }) => ({
      expr: `count(${firing}) or vector(0)`,
      eval_time,
      exp_samples: [{ labels: '{}', value }],
    })),
  };
}

describe('R-OB3 R-OB9: the rules of Prometheus', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-rules-'));
    writeFileSync(join(folder, 'sluice.rules.yml'), prometheusRules());
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('are rules that promtool accepts', () => {
    const { ok, output } = runPromtool(['check', 'rules', join(folder, 'sluice.rules.yml')]);
    expect(output).toContain(`SUCCESS: ${alertNames.length} rules found`);
    expect(ok).toBe(true);
  });

  const runTests = (tests: readonly object[]) => {
    const path = join(folder, 'tests.yml');
    const file = { rule_files: ['sluice.rules.yml'], evaluation_interval: '30s', tests };
    writeFileSync(path, JSON.stringify(file));
    return runPromtool(['test', 'rules', path]);
  };
  const success = { ok: true, output: expect.stringContaining('SUCCESS') as string };

  it('each fires beyond its threshold, not at it, and clears', () => {
    expect(runTests(alertNames.map(testOf))).toMatchObject(success);
  });

  it('see the first burst after a server began: its series begin with 0', () => {
    expect(
      runTests([burstTest('dead_letter_rate', 'sluice_tasks_dlq_total{reason="X"}', 20)]),
    ).toMatchObject(success);
    expect(runTests([burstTest('failure_rate_elevated', ended, 20)])).toMatchObject(success);
  });
});
