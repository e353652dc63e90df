import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';

import type { Lease, TaskId, WorkerId } from '../../src/domain/ids.js';
import type { Engine } from '../../src/engine/open-engine.js';
import type { Held } from '../../src/protocol/workers-api.js';
import { silentLog } from '../../src/runtime/log.js';
import { buildApp } from '../../src/server/app.js';
import type { App } from '../../src/server/app-parts.js';
import { createMetrics } from '../../src/server/metrics.js';
import { lintMetrics } from '../support/services/promtool.js';
import { until } from '../support/until.js';
import {
  describeOnEveryEngine,
  describeOnPostgres,
  drafts,
  freshQueue,
  submitAll,
  TestWorker,
} from './support.js';

const minuteMs = 60_000;
const taskType = 'call';

type Labels = Readonly<Record<string, string>>;

/** The sum of the series of a metric that have these labels; null: there is none. */
function valueIn(text: string, name: string, labels: Labels = {}): number | null {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const values = text.split('\n').flatMap((line) => {
    const [series = '', value] = line.split(' ');
    const isIt = series === name || series.startsWith(`${name}{`);
    return isIt && wanted.every((one) => series.includes(one)) ? [Number(value)] : [];
  });
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}

async function serve(engine: Engine): Promise<App> {
  const app = buildApp({
    api: engine,
    health: {
      degradation: () => null,
      readiness: async () => ({ ready: true }),
      progress: async () => ({ progressing: true }),
    },
    events: engine,
    metrics: createMetrics(engine, engine, () => engine.refused()),
    log: silentLog,
  });
  await app.ready();
  return app;
}

async function scrapeFrom(app: App): Promise<string> {
  return (await app.inject({ url: '/metrics' })).body;
}

describeOnEveryEngine(
  'R-OB1: every metric of a server moves when it should',
  (under) => {
    let app: App;

    beforeAll(async () => {
      app = await serve(under().engine);
    });

    afterAll(() => app.close());

    const scrape = () => scrapeFrom(app);
    const read = async (name: string, labels?: Labels) =>
      valueIn(await scrape(), `sluice_${name}`, labels);
    const becomes = (name: string, labels: Labels, value: number) =>
      until(`${name} ${JSON.stringify(labels)} to be ${value}`, async () => {
        return (await read(name, labels)) === value;
      });
    /** By how much metrics grow while something is done. */
    const growth = async (
      names: readonly (readonly [string, Labels?])[],
      act: () => Promise<unknown>,
    ) => {
      const before = await scrape();
      await act();
      const after = await scrape();
      return names.map(([name, labels = {}]) => {
        const [was, is] = [before, after].map((text) => valueIn(text, `sluice_${name}`, labels));
        return (is ?? 0) - (was ?? 0);
      });
    };
    /** Grows while somebody looks: by the seconds between two looks. */
    const untilHeldBack = async (queue: string, reason: string) => {
      const seconds = () => read('throttled_seconds_total', { queue, reason });
      const before = (await seconds()) ?? 0;
      await until(`${reason} to hold ${queue} back`, async () => {
        await under().engine.measurements.tick();
        return ((await seconds()) ?? 0) > before;
      });
    };
    const open = async (registration: Parameters<typeof TestWorker.register>[1] = {}) => {
      const queue = freshQueue();
      const { engine } = under();
      const worker = await TestWorker.register(engine, { queues: [queue], ...registration });
      return { engine, queue, worker };
    };

    it('depth, states, waits, assignment, execution and duration of a task', async () => {
      const was = await scrape();
      const plus = (name: string, labels: Labels, more: number) =>
        becomes(name, labels, (valueIn(was, `sluice_${name}`, labels) ?? 0) + more);
      const { engine, queue, worker } = await open();
      await plus('workers', { status: 'active' }, 1);
      const submitted = await growth([['tasks_total', { queue, status: 'queued' }]], () =>
        submitAll(engine, drafts(3, { taskType, queue, priority: 'low' })),
      );
      expect(submitted).toEqual([3]);
      await becomes('queue_depth', { queue, priority: 'low' }, 3);
      await plus('task_state_tasks', { status: 'queued' }, 3);
      await plus('active_tasks', {}, 3);
      const ran = await growth(
        [
          ['task_wait_seconds_count', { queue, priority: 'low' }],
          ['task_assignment_seconds_count'],
          ['task_execution_seconds_count', { queue, status: 'succeeded' }],
          ['task_duration_seconds_count', { queue, priority: 'low', status: 'completed' }],
          ['tasks_total', { queue, status: 'completed' }],
          ['task_state_transitions_total', { from: 'executing', to: 'completed' }],
        ],
        async () => worker.complete(await worker.takeOne()),
      );
      expect(ran).toEqual([1, 1, 1, 1, 1, 1]);
      const executing = await worker.takeOne();
      await becomes('queue_running_tasks', { queue }, 1);
      await plus('task_state_tasks', { status: 'executing' }, 1);
      const assigned = await worker.takeOne({ prefetch: true });
      await plus('task_state_tasks', { status: 'assigned' }, 1);
      await plus('task_state_tasks', { status: 'executing' }, 1);
      await plus('active_tasks', {}, 2);
      await becomes('queue_depth', { queue, priority: 'low' }, 0);
      await worker.completeAll([executing, assigned]);
      await plus('active_tasks', {}, 0);
      await engine.heartbeat(worker.workerId, { currentLoad: 0, status: 'draining' });
      await plus('workers', { status: 'draining' }, 1);
      await plus('workers', { status: 'active' }, 0);
    });

    it('ages, ageing and the risk of starvation', async () => {
      const { engine, queue } = await open();
      await submitAll(engine, drafts(2, { taskType, queue, priority: 'low' }));
      const ages = { priority: 'high' };
      // Nothing waits but these: what the test before left has ended.
      await becomes('starvation_risk_tasks', {}, 0);
      await becomes('queue_age_seconds_count', { priority: 'low' }, 2);
      under().clock.advance(31 * minuteMs);
      await becomes('queue_depth', { queue, priority: 'high' }, 2);
      await becomes('starvation_risk_tasks', {}, 2);
      await becomes('queue_age_seconds_count', ages, 2);
      for (const quantile of ['1', '0.95']) {
        // In a sketch with buckets of 2 %.
        const age = (await read('queue_age_seconds', { ...ages, quantile })) ?? 0;
        expect(Math.abs(age / (31 * 60) - 1)).toBeLessThan(0.03);
      }
      const worker = await TestWorker.register(engine, { queues: [queue] });
      const grown = await growth([['tasks_promoted_total', { from: 'low', to: 'high' }]], () =>
        worker.takeOne(),
      );
      expect(grown).toEqual([1]);
    });

    it('retries, dead letters and bad ends', async () => {
      const { engine, queue, worker } = await open();
      await submitAll(engine, drafts(1, { taskType, queue, maxRetries: 1 }));
      const error = { code: 'TIMEOUT', message: 'took too long' };
      const dead = (await read('task_state_tasks', { status: 'dead_letter' })) ?? 0;
      const grown = await growth(
        [
          ['task_retries_total', { priority: 'medium', reason: 'TIMEOUT' }],
          ['tasks_failed_total', { priority: 'medium', reason: 'TIMEOUT' }],
          ['tasks_dlq_total', { reason: 'TIMEOUT' }],
        ],
        async () => {
          await worker.fail(await worker.takeOne(), error);
          under().clock.advance(5 * minuteMs);
          await worker.fail(await worker.takeOne(), error);
        },
      );
      expect(grown).toEqual([1, 1, 1]);
      await becomes('task_state_tasks', { status: 'dead_letter' }, dead + 1);
    });

    it('limits, what holds a queue back, and submits that are refused', async () => {
      const { engine, queue, worker } = await open();
      const limits = [{ unit: 'requests', rate: 60, perSeconds: 3_600, burst: 1 }];
      await engine.putQueue(queue, { limits, maxActive: 5 });
      await submitAll(engine, drafts(5, { taskType, queue, priority: 'high' }));
      await becomes('limit_tokens', { queue, unit: 'requests' }, 1);
      const [refused] = await growth(
        [['admission_rejected_total', { reason: 'queue_max_active' }]],
        () => engine.submit({ taskType, queue }).catch(() => null),
      );
      expect(refused).toBe(1);
      await worker.takeOne();
      await becomes('limit_tokens', { queue, unit: 'requests' }, 0);
      await untilHeldBack(queue, 'rate_limit');
      await engine.putQueue(queue, { maxConcurrency: 1 });
      await untilHeldBack(queue, 'max_concurrency');
      await engine.pauseQueue(queue);
      await untilHeldBack(queue, 'paused');
      await engine.resumeQueue(queue);
    });

    it('a circuit that opens', async () => {
      const { engine, queue, worker } = await open();
      await engine.putQueue(queue, { maxConcurrency: 100 });
      await submitAll(engine, drafts(4, { taskType, queue }));
      await becomes('circuit_state', { queue }, 0);
      const slowDown = { code: 'RATE_LIMITED', message: '429', retryAfterSeconds: 600 };
      for (const task of await worker.take(3)) await worker.fail(task, slowDown);
      await becomes('circuit_state', { queue }, 2);
      await untilHeldBack(queue, 'pushed_back');
    });

    it('a circuit that opens since the service is away, and tries it with two probes', async () => {
      const { engine, queue, worker } = await open();
      await engine.putQueue(queue, { maxConcurrency: 100 });
      await submitAll(engine, drafts(40, { taskType, queue }));
      const away = { code: 'UNAVAILABLE', message: '503', retriable: true };
      for (const task of await worker.take(5)) await worker.fail(task, away);
      await becomes('circuit_state', { queue }, 2);
      await untilHeldBack(queue, 'circuit_open');
      under().clock.advance(30_000);
      await worker.take(2);
      await becomes('circuit_state', { queue }, 1);
      await untilHeldBack(queue, 'circuit_half_open');
      await engine.cancelTasks({ queue });
    });

    it('writes that their lease refuses, and heartbeats that are not acknowledged', async () => {
      const { engine, worker } = await open();
      const { workerId } = worker;
      const held = { taskId: randomUUID() as TaskId, lease: randomUUID() as Lease };
      const operations = ['start', 'progress', 'result', 'release'];
      const grown = await growth(
        [
          ...operations.map((operation) => ['stale_writes_total', { operation }] as const),
          ['worker_heartbeat_failures_total'],
        ],
        async () => {
          await expect(engine.start(workerId, held)).rejects.toThrow('no longer held');
          await expect(engine.progress(workerId, held, { percent: 1 })).rejects.toThrow('lease');
          expect(await worker.complete(held)).toMatchObject({ accepted: false });
          await engine.release(workerId, [held]);
          const beat = { currentLoad: 0, status: 'active' } as const;
          await expect(engine.heartbeat(randomUUID() as WorkerId, beat)).rejects.toThrow();
        },
      );
      expect(grown).toEqual([1, 1, 1, 1, 1]);
    });

    it('workers that are suspended, and the capacity in use', async () => {
      const { engine, queue, worker } = await open({ capacity: 4 });
      const healthy = await TestWorker.register(engine, { queues: [queue] });
      await submitAll(engine, drafts(20, { taskType, queue, maxRetries: 9 }));
      const failures = (await read('worker_failures_total', { reason: 'suspended' })) ?? 0;
      const suspended = (await read('workers_suspended')) ?? 0;
      await worker.fail(await worker.takeOne());
      await healthy.complete(await healthy.takeOne());
      for (let n = 0; n < 4; n++) await worker.fail(await worker.takeOne());
      await becomes('worker_failures_total', { reason: 'suspended' }, failures + 1);
      await becomes('workers_suspended', {}, suspended + 1);
      const tasks = await healthy.take(4);
      await healthy.beat(tasks);
      // By those of this test: the workers of the others hold nothing.
      await until('exactly the capacity to be used', async () => {
        const { usedCapacity, totalCapacity } = (await engine.getStatistics()).workers;
        const ratio = await read('worker_capacity_used_ratio');
        return usedCapacity >= 4 && ratio === usedCapacity / totalCapacity;
      });
    });

    it('names of OB1 are all there, and promtool finds no fault', async () => {
      const text = await scrape();
      const missing = everyName.filter((name) => !text.includes(`# TYPE sluice_${name} `));
      expect(missing).toEqual([]);
      expect(lintMetrics(text)).toBe('');
    });
  },
  { leaseMs: 10 * minuteMs },
);

describeOnPostgres('R-OB1: metrics of attempts that nobody ends', (server) => {
  it('count time-outs, tasks that are never started, and workers that fall silent', async () => {
    const engine = await server().open({
      settings: { leaseMs: 1_000, heartbeatIntervalMs: 200, timeoutGraceMs: 0, unstartedMs: 300 },
    });
    const app = await serve(engine);
    onTestFinished(() => app.close());
    const queue = freshQueue();
    const before = await scrapeFrom(app);
    const grows = (name: string, labels: Labels = {}) =>
      until(`${name} to grow`, async () => {
        const [was, is] = [before, await scrapeFrom(app)].map((text) => {
          return valueIn(text, `sluice_${name}`, labels) ?? 0;
        });
        return (is ?? 0) > (was ?? 0);
      });
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const held: Held[] = [];
    const beating = setInterval(() => void worker.beat(held).catch(() => undefined), 100);
    onTestFinished(() => {
      clearInterval(beating);
    });
    await submitAll(engine, drafts(2, { taskType, queue, timeoutSeconds: 1, maxRetries: 9 }));
    held.push(await worker.takeOne(), await worker.takeOne({ prefetch: true }));
    await submitAll(engine, drafts(1, { taskType, queue, timeoutSeconds: 600, maxRetries: 9 }));
    const silent = await TestWorker.register(engine, { queues: [queue] });
    await silent.take(1);
    await grows('task_timeouts_total');
    await grows('task_assignment_timeouts_total');
    await grows('leases_lapsed_total');
    await grows('worker_failures_total', { reason: 'heartbeat_lapsed' });
    await grows('task_retries_total', { priority: 'medium', reason: 'TIMEOUT' });
    await grows('workers', { status: 'dead' });
  });
});

/** Of REQUIREMENTS.md; `workers_total` is a gauge, which promtool wants without `_total`. */
const everyName = [
  ...['queue_depth', 'queue_age_seconds', 'tasks_promoted_total', 'starvation_risk_tasks'],
  ...['task_duration_seconds', 'task_wait_seconds', 'task_assignment_timeouts_total'],
  ...['worker_failures_total', 'task_retries_total', 'tasks_total', 'task_state_transitions_total'],
  ...['tasks_failed_total', 'tasks_dlq_total', 'workers', 'worker_capacity_used_ratio'],
  ...['worker_heartbeat_failures_total', 'leases_lapsed_total', 'task_timeouts_total'],
  ...['throttled_seconds_total', 'limit_tokens', 'admission_rejected_total', 'circuit_state'],
  ...['task_state_tasks', 'task_execution_seconds', 'task_assignment_seconds'],
  ...['stale_writes_total', 'workers_suspended'],
];
