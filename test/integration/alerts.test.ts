import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { alertNames, ruleOf, type AlertName } from '../../src/domain/alerts/rules.js';
import { counterPositions, type CounterName } from '../../src/domain/counters.js';
import type { TaskState } from '../../src/domain/task-state.js';
import { ActiveWorkers } from '../../src/engine/active-workers.js';
import { Alerts } from '../../src/engine/alerts.js';
import { Checkpoints } from '../../src/engine/checkpoints.js';
import type { EngineContext } from '../../src/engine/context.js';
import { joinParts } from '../../src/engine/engine-parts.js';
import { QueueDirectory } from '../../src/engine/queue-directory.js';
import { LiveQueues } from '../../src/engine/live-queues.js';
import { Scaler } from '../../src/engine/scaler.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { createLog } from '../../src/runtime/log.js';
import { classifyDeadLetters, noteUncounted } from '../../src/store/classify-dead-letters.js';
import type { Database } from '../../src/store/database.js';
import { defaultPatience } from '../../src/store/silent-connections.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../store/support.js';
import { describeOnPostgres as describeEnginesOnPostgres, refusal } from './support.js';
import { contextOf } from './engine-parts.js';

const minuteMs = 60_000;
const beganMs = Date.UTC(2030, 0, 1, 12);

/** A system whose time and state a test decides, and servers that evaluate its alerts. */
class Stage {
  readonly clock = new ManualClock(beganMs);
  readonly db: Database;
  readonly context: EngineContext;

  constructor(db: Database, options: Partial<EngineContext> = {}) {
    this.db = db;
    const ready = new MemoryReadyQueue({ clock: this.clock });
    const alerts = { intervalMs: 10_000, tells: true };
    this.context = { ...contextOf(db, ready), clock: this.clock, alerts, ...options };
  }

  at(agoMs: number): Date {
    return new Date(this.clock.nowMs() - agoMs);
  }

  /** A server that has just been started. */
  async server(): Promise<Alerts> {
    const parts = joinParts(this.context, 'submit', {
      isClosing: () => false,
    });
    const { line, counters, health, outbox, audit } = parts;
    const live = new LiveQueues(this.context.ready);
    const queues = new QueueDirectory(this.context, new Checkpoints(this.context));
    await queues.refresh();
    const active = new ActiveWorkers(this.context);
    const notServing = () => null;
    const scaler = new Scaler(this.context, { active, live, queues, counters, notServing });
    const sources = { line, counters, queues, health, scaler };
    return new Alerts(this.context, sources, outbox, audit);
  }

  /** Each time by a server that knows nothing of the time before. Dead letters that were staged are counted first. */
  async evaluate(): Promise<void> {
    await noteUncounted(this.db, null, 1_000);
    await classifyDeadLetters(this.db, 1_000);
    await (await this.server()).tick();
  }

  async stateOf(name: AlertName): Promise<string[]> {
    const { items: views } = await (await this.server()).listAlerts();
    return views.filter((view) => view.name === name).map(({ state }) => state);
  }

  /** What webhooks are told, in order. */
  async told(): Promise<string[]> {
    const rows = await this.db.query<{ told: string }>(
      `select event_type || ' ' || (event->>'name') as told from sluice.webhook_deliveries order by id`,
    );
    return rows.map(({ told }) => told);
  }

  async tasks(count: number, task: Partial<StagedTask> = {}): Promise<void> {
    const { queue, priority, ageMs, status, error, lateMs } = { ...usual, ...task };
    const isDead = status === 'dead_letter';
    await this.db.query(
      `insert into sluice.tasks (id, queue, task_type, priority, status, created_at, eligible_at,
         queued_at, ended_at, waits_for, run_at, timeout_seconds, max_retries, error)
       select gen_random_uuid(), $2, 'chat', $3::smallint, $4, $5::timestamptz, $5::timestamptz,
         case when $4 = 'queued' then $5::timestamptz end, $6::timestamptz,
         case when $4 = 'pending' then 'time' end, $7::timestamptz, 60, 3, $8::json
       from generate_series(1, $1::int)`,
      [
        count,
        queue,
        priority,
        status,
        this.at(ageMs),
        isDead ? this.at(ageMs) : null,
        status === 'pending' ? this.at(lateMs) : null,
        isDead ? JSON.stringify(error) : null,
      ],
    );
  }

  async workers(count: number, worker: Partial<StagedWorker> = {}): Promise<void> {
    const { status, load, benchedUntil, lostAt } = { ...idle, ...worker };
    await this.db.query(
      `insert into sluice.workers (id, capacity, status, current_load, benched_until, lost_at,
         registered_at, last_heartbeat_at)
       select gen_random_uuid(), 10, $2, $3::int, $4::timestamptz, $5::timestamptz, $6, $6
       from generate_series(1, $1::int)`,
      [count, status, load, benchedUntil, lostAt, this.at(0)],
    );
  }

  /** As the servers count, so long ago. */
  async counted(amounts: Partial<Record<CounterName, number>>, agoMs = 1_000): Promise<void> {
    this.clock.advance(-agoMs);
    const { counters } = joinParts(this.context, 'submit', {
      isClosing: () => false,
    });
    for (const [name, amount] of Object.entries(amounts)) {
      counters.add(name as CounterName, amount);
    }
    await counters.writeAll();
    this.clock.advance(agoMs);
  }
}

interface StagedTask {
  readonly queue: string;
  readonly priority: 0 | 1 | 2;
  readonly ageMs: number;
  readonly status: TaskState;
  readonly error: { code: string; message: string; retriable: boolean };
  readonly lateMs: number;
}

const usual: StagedTask = {
  queue: 'q',
  priority: 1,
  ageMs: 1_000,
  status: 'queued',
  error: { code: 'X', message: 'it broke', retriable: true },
  lateMs: 0,
};

interface StagedWorker {
  readonly status: 'active' | 'draining' | 'dead';
  readonly load: number;
  readonly benchedUntil: Date | null;
  readonly lostAt: Date | null;
}

const idle: StagedWorker = { status: 'active', load: 0, benchedUntil: null, lostAt: null };

interface Scenario {
  /** Nearly, but not beyond the threshold: it must not fire. */
  readonly almost: (stage: Stage) => Promise<void>;
  /** What is missing then. */
  readonly begin: (stage: Stage) => Promise<void>;
  /** The trouble is over. */
  readonly end: (stage: Stage) => Promise<void>;
  /** What goes on while it lasts, for rules that look at the last minute. Every 30 seconds. */
  readonly sustain?: (stage: Stage) => Promise<void>;
  /** Instead of the default, which would take many rows. */
  readonly threshold?: number;
}

const noTasks = (stage: Stage) => stage.db.run('delete from sluice.tasks');
const noWorkers = (stage: Stage) => stage.db.run('delete from sluice.workers');
const later = async (stage: Stage) => stage.clock.advance(6 * minuteMs);
const dead =
  (count: number, task: Partial<StagedTask> = {}) =>
  (stage: Stage) =>
    stage.tasks(count, { status: 'dead_letter', ageMs: 3_600_000, ...task });

const scenarios: Readonly<Record<AlertName, Scenario>> = {
  high_priority_depth: {
    almost: (stage) => stage.tasks(1_000, { priority: 0 }),
    begin: (stage) => stage.tasks(1, { priority: 0 }),
    end: noTasks,
  },
  high_priority_wait: {
    almost: (stage) => stage.tasks(1, { priority: 0, ageMs: minuteMs }),
    begin: (stage) => stage.tasks(1, { priority: 0, ageMs: minuteMs + 1_000 }),
    end: noTasks,
  },
  low_priority_wait: {
    almost: (stage) => stage.tasks(1, { priority: 2, ageMs: 25 * minuteMs }),
    begin: (stage) => stage.tasks(1, { priority: 2, ageMs: 25 * minuteMs + 1_000 }),
    end: noTasks,
  },
  ageing_promise_broken: {
    almost: (stage) => stage.tasks(1, { priority: 2, ageMs: 29 * minuteMs - 30_000 }),
    begin: (stage) => stage.tasks(1, { priority: 2, ageMs: 31 * minuteMs }),
    end: noTasks,
  },
  task_waiting_long: {
    almost: (stage) => stage.tasks(1, { ageMs: 60 * minuteMs }),
    begin: (stage) => stage.tasks(1, { ageMs: 60 * minuteMs + 1_000 }),
    end: noTasks,
  },
  age_p95: {
    almost: (stage) => stage.tasks(20, { ageMs: 10 * minuteMs }),
    begin: (stage) => stage.tasks(5, { ageMs: 11 * minuteMs }),
    end: noTasks,
  },
  queue_depth: {
    threshold: 500,
    almost: async (stage) => {
      await stage.tasks(500, { queue: 'deep' });
      await stage.tasks(400, { queue: 'other' });
    },
    begin: (stage) => stage.tasks(1, { queue: 'deep' }),
    end: noTasks,
  },
  total_depth: {
    threshold: 500,
    almost: (stage) => stage.tasks(500),
    begin: (stage) => stage.tasks(1, { queue: 'other' }),
    end: noTasks,
  },
  completion_rate_drop: {
    almost: async (stage) => {
      await stage.counted({ completed: 1_150 }, 40 * minuteMs);
      await stage.counted({ completed: 50 }, 4 * minuteMs);
      await stage.tasks(1);
    },
    begin: (stage) => stage.counted({ completed: 100 }, 30 * minuteMs),
    end: (stage) => stage.counted({ completed: 100 }),
  },
  no_progress: {
    almost: (stage) => stage.tasks(1, { ageMs: minuteMs + 1_000 }),
    begin: (stage) => stage.workers(1),
    end: noTasks,
  },
  schedule_missed: {
    almost: (stage) => stage.tasks(1, { status: 'pending', lateMs: minuteMs }),
    begin: (stage) => stage.tasks(1, { status: 'pending', lateMs: minuteMs + 1_000 }),
    end: noTasks,
  },
  failure_rate: {
    almost: (stage) => stage.counted({ failed: 25, completed: 75 }),
    begin: (stage) => stage.counted({ failed: 1 }),
    sustain: (stage) => stage.counted({ failed: 13, completed: 37 }),
    end: later,
  },
  failure_rate_elevated: {
    almost: (stage) => stage.counted({ failed: 10, completed: 90 }, 2 * minuteMs),
    begin: (stage) => stage.counted({ failed: 1 }, 3 * minuteMs),
    end: later,
  },
  retry_rate: {
    almost: (stage) => stage.counted({ retried: 15, completed: 100 }, 2 * minuteMs),
    begin: (stage) => stage.counted({ retried: 1 }, 3 * minuteMs),
    end: later,
  },
  circuits_open: {
    almost: (stage) => openCircuits(stage, 1, 5),
    begin: (stage) => openCircuits(stage, 6, 6),
    end: (stage) => stage.db.run('delete from sluice.queues'),
  },
  assignment_timeouts: {
    almost: (stage) => stage.counted({ never_started: 5 }),
    begin: (stage) => stage.counted({ never_started: 1 }),
    end: later,
  },
  leases_lapsed: {
    almost: (stage) => stage.counted({ lapsed: 1 }),
    begin: (stage) => stage.counted({ lapsed: 1 }),
    end: later,
  },
  idempotency_conflicts: {
    almost: (stage) => stage.counted({ idempotency_conflict: 1 }, 6 * minuteMs),
    begin: (stage) => stage.counted({ idempotency_conflict: 1 }),
    end: later,
  },
  webhook_undeliverable: {
    almost: (stage) => failingMessage(stage, 5 * minuteMs),
    begin: (stage) => failingMessage(stage, 5 * minuteMs + 1_000),
    end: (stage) => stage.db.run(`delete from sluice.webhook_deliveries where target = 'other'`),
  },
  dead_letter_rate: {
    almost: (stage) => stage.counted({ dead_letter: 10 }),
    begin: (stage) => stage.counted({ dead_letter: 1 }),
    end: later,
  },
  dead_letter_new_pattern: {
    almost: dead(1, { ageMs: 11 * minuteMs }),
    begin: dead(1, { ageMs: minuteMs, error: { ...usual.error, code: 'NEW' } }),
    end: async (stage) => stage.clock.advance(10 * minuteMs),
  },
  dead_letters_replayable: {
    almost: async (stage) => {
      for (const code of ['A', 'B']) {
        await dead(50, { error: { ...usual.error, code } })(stage);
        await dead(50, { error: { code: 'BAD', message: '', retriable: false } })(stage);
      }
    },
    begin: dead(1),
    end: noTasks,
  },
  dead_letters_one_reason: {
    almost: async (stage) => {
      await dead(50)(stage);
      await dead(50, { error: { ...usual.error, code: 'Y' } })(stage);
    },
    begin: dead(1),
    end: noTasks,
  },
  no_active_worker: {
    almost: async (stage) => {
      await stage.tasks(3);
      await stage.workers(1, { load: 10 });
    },
    begin: (stage) => stage.db.run(`update sluice.workers set status = 'draining'`),
    end: (stage) => stage.workers(1),
  },
  utilisation: {
    almost: (stage) => stage.workers(10, { load: 9 }),
    begin: (stage) => stage.workers(1, { load: 10 }),
    end: noWorkers,
  },
  idle_workers_low: {
    almost: async (stage) => {
      await stage.workers(4, { load: 1 });
      await stage.workers(1);
    },
    begin: (stage) => stage.workers(1, { load: 1 }),
    end: (stage) => stage.workers(1),
  },
  worker_failures: {
    almost: async (stage) => {
      await stage.workers(4);
      await stage.workers(1, { status: 'dead', lostAt: stage.at(minuteMs) });
      await stage.workers(9, { status: 'dead', lostAt: stage.at(6 * minuteMs) });
      await stage.workers(9, { status: 'dead' });
    },
    begin: (stage) => stage.workers(1, { status: 'dead', lostAt: stage.at(minuteMs) }),
    end: later,
  },
  workers_suspended: {
    almost: async (stage) => {
      await stage.workers(9);
      await stage.workers(1, { benchedUntil: stage.at(-minuteMs) });
    },
    begin: (stage) => stage.workers(1, { benchedUntil: stage.at(-minuteMs) }),
    end: later,
  },
  scale_out_requested: {
    almost: (stage) => stage.tasks(5),
    begin: (stage) => asking(stage, null),
    end: noTasks,
  },
  scale_out_failing: {
    almost: (stage) => asking(stage, stage.at(minuteMs)),
    begin: (stage) => asking(stage, stage.at(minuteMs + 1_000)),
    end: (stage) => asking(stage, null),
  },
};

async function openCircuits(stage: Stage, from: number, to: number): Promise<void> {
  await stage.db.query(
    `insert into sluice.queues (name, circuit, circuit_reason, circuit_until, circuit_probes_at, circuit_trips)
     select 'queue-' || n, 'open', 'unavailable', $3::timestamptz, $3::timestamptz, 1
     from generate_series($1::int, $2::int) as n`,
    [from, to, stage.at(-60 * minuteMs)],
  );
}

/** Of a webhook that nothing here tells anything. */
async function failingMessage(stage: Stage, failingMs: number): Promise<void> {
  await stage.db.query(
    `insert into sluice.webhook_deliveries
       (message_id, target, event_type, event, created_at, due_at, failing_since)
     values ($1, 'other', 'x', '{}', $2, $2, $2)`,
    [randomUUID(), stage.at(failingMs)],
  );
}

async function asking(stage: Stage, failingSince: Date | null): Promise<void> {
  await stage.db.query(
    `insert into sluice.scaling (asker, renewed_at, provisioner, asked_at, failing_since, error)
     values (gen_random_uuid(), $1, 'webhook', $1, $2, $3)
     on conflict (only_row) do update set
       renewed_at = excluded.renewed_at, failing_since = excluded.failing_since, error = excluded.error`,
    [stage.at(-60 * minuteMs), failingSince, failingSince === null ? null : 'no'],
  );
}

describeOnEveryDatabase('alerts', (db) => {
  it.each(alertNames)(
    'R-OB3 R-OB9: %s fires beyond its threshold, once, and is resolved, once',
    async (name) => {
      const stage = new Stage(db());
      const { almost, begin, sustain, end, threshold } = scenarios[name];
      if (threshold !== undefined) await (await stage.server()).putAlert(name, { threshold });
      await almost(stage);
      await stage.evaluate();
      expect(await stage.stateOf(name)).toEqual(['ok']);

      await begin(stage);
      await stage.evaluate();
      // For as long as the rule says, to the second.
      const forMs = ruleOf(name).forSeconds * 1_000;
      for (let leftMs = forMs; leftMs > 0;) {
        expect(await stage.stateOf(name)).toEqual(['pending']);
        const stepMs = leftMs === 1_000 ? 1_000 : Math.min(30_000, leftMs - 1_000);
        stage.clock.advance(stepMs);
        leftMs -= stepMs;
        await sustain?.(stage);
        await stage.evaluate();
      }
      expect(await stage.stateOf(name)).toEqual(['firing']);
      await stage.evaluate();

      await end(stage);
      await stage.evaluate();
      expect(await stage.stateOf(name)).toEqual(['ok']);
      await stage.evaluate();
      const about = (await stage.told()).filter((told) => told.endsWith(` ${name}`));
      expect(about).toEqual([`alert.firing ${name}`, `alert.resolved ${name}`]);
    },
  );

  it('R-OB3: a server that dies while an alert is pending or fires changes nothing about it', async () => {
    const stage = new Stage(db());
    await stage.tasks(3);
    const first = await stage.server();
    await first.tick();
    stage.clock.advance(2 * minuteMs);
    const second = await stage.server();
    await second.tick();
    expect(await stage.stateOf('no_active_worker')).toEqual(['firing']);
    const since = stage.clock.nowMs();
    stage.clock.advance(minuteMs);
    const third = await stage.server();
    await third.tick();
    const [alert] = (await third.listAlerts({ state: 'firing' })).items;
    expect(alert).toMatchObject({ name: 'no_active_worker', since: new Date(since), value: 3 });
    expect(await stage.told()).toEqual(['alert.firing no_active_worker']);
  });

  it('R-OB3: what is silenced is evaluated and not told; what still fires afterwards is told then', async () => {
    const stage = new Stage(db());
    const server = await stage.server();
    const silence = { seconds: 3_600, note: 'a batch' };
    expect(await server.silenceAlert('high_priority_wait', silence)).toMatchObject({
      state: 'silenced',
      since: null,
      silencedUntil: stage.at(-3_600_000),
      silenceNote: 'a batch',
    });
    await stage.tasks(1, { priority: 0, ageMs: 2 * minuteMs });
    await stage.workers(1, { load: 10 });
    await stage.evaluate();
    const [silenced] = (await server.listAlerts({ state: 'silenced' })).items;
    expect(silenced).toMatchObject({ name: 'high_priority_wait', since: stage.at(0), value: 120 });
    expect(await stage.told()).toEqual([]);
    await server.silenceAlert('high_priority_wait', { seconds: 0 });
    await stage.evaluate();
    expect(await stage.told()).toEqual(['alert.firing high_priority_wait']);
  });

  it('R-OB3: a rule goes by what it was set to, is off when told, and {} resets it', async () => {
    const stage = new Stage(db());
    const server = await stage.server();
    await stage.tasks(11, { queue: 'a' });
    await stage.workers(1, { load: 10 });
    const set = await server.putAlert('queue_depth', { threshold: 10, forSeconds: 0 });
    expect(set).toMatchObject({ threshold: 10, forSeconds: 0, off: false, labels: {} });
    await stage.evaluate();
    const [alert] = (await server.listAlerts({ state: 'firing' })).items;
    expect(alert).toMatchObject({ name: 'queue_depth', value: 11, labels: { queue: 'a' } });
    expect(alert?.summary).toContain('queue a: 11 tasks; fires above 10 tasks');

    await server.putAlert('queue_depth', { threshold: 10, forSeconds: 0, off: true });
    await stage.evaluate();
    expect((await server.listAlerts({ state: 'firing' })).items).toEqual([]);
    expect(await stage.told()).toEqual(['alert.firing queue_depth', 'alert.resolved queue_depth']);
    expect(await server.putAlert('queue_depth', {})).toMatchObject({
      threshold: 5_000,
      forSeconds: 60,
      off: false,
    });
  });

  it('R-OB3: without a webhook nothing is kept for one; it is told of what still fires once there is one', async () => {
    const stage = new Stage(db(), { alerts: { intervalMs: 10_000, tells: false } });
    await stage.tasks(1, { priority: 0, ageMs: 2 * minuteMs });
    await stage.workers(1, { load: 10 });
    await stage.evaluate();
    expect(await stage.stateOf('high_priority_wait')).toEqual(['firing']);
    expect(await stage.told()).toEqual([]);
    const telling = new Stage(db());
    await telling.evaluate();
    expect(await telling.told()).toEqual(['alert.firing high_priority_wait']);
  });

  it('R-OB3: a message that no server tries any more, since its webhook was taken away, is not told of for ever', async () => {
    const stage = new Stage(db());
    await failingMessage(stage, 10 * minuteMs);
    await stage.evaluate();
    expect(await stage.stateOf('webhook_undeliverable')).toEqual(['firing']);
    stage.clock.advance(60 * minuteMs);
    await stage.evaluate();
    expect(await stage.stateOf('webhook_undeliverable')).toEqual(['ok']);
  });

  it('R-OB3: what was measured is shown until the next evaluation, however seldom there is one', async () => {
    const stage = new Stage(db(), { alerts: { intervalMs: 10 * minuteMs, tells: true } });
    await stage.tasks(1, { priority: 0, ageMs: 2 * minuteMs });
    await stage.evaluate();
    stage.clock.advance(9 * minuteMs);
    const [alert] = (await (await stage.server()).listAlerts({ state: 'firing' })).items;
    expect(alert).toMatchObject({ name: 'high_priority_wait', value: 120 });
    expect(await (await stage.server()).findSnapshot()).toMatchObject({ oldestHighSeconds: 120 });
    stage.clock.advance(30 * minuteMs);
    expect(await (await stage.server()).findSnapshot()).toBeNull();
  });

  it('R-AD7: a name that is no rule is refused, with the one that was meant', async () => {
    const server = await new Stage(db()).server();
    await expect(server.putAlert('queue-dept', {})).rejects.toMatchObject({
      code: 'alert_not_found',
      message: 'There is no alert rule queue-dept. Did you mean queue_depth?',
    });
    const silencing = server.silenceAlert('constructor', { seconds: 1 });
    await expect(silencing).rejects.toMatchObject({ code: 'alert_not_found' });
  });

  it('R-OB3: before the first evaluation every rule is well, and nothing is claimed to be measured', async () => {
    const { items: views, evaluatedAt } = await (await new Stage(db()).server()).listAlerts();
    expect(evaluatedAt).toBeNull();
    expect(views.map(({ name }) => name)).toEqual(alertNames);
    expect(views.filter(({ state, value }) => state !== 'ok' || value !== null)).toEqual([]);
  });
});

describeOnPostgres('alerts of several servers', (postgres) => {
  it('R-OB3: of servers that evaluate at once one does, and every alert fires once', async () => {
    const stages = await Promise.all(
      Array.from({ length: 4 }, async () => new Stage(await postgres().open(), { mode: 'redis' })),
    );
    const [stage] = stages;
    if (stage === undefined) throw new Error('there are four');
    await stage.tasks(1, { priority: 0, ageMs: 2 * minuteMs });
    const servers = await Promise.all(stages.map((one) => one.server()));
    for (let round = 0; round < 20; round++) {
      await Promise.all(servers.map((server) => server.tick()));
    }
    expect(await stage.told()).toEqual(['alert.firing high_priority_wait']);
    const [row] = await stage.db.query('select count(*)::int as rows from sluice.alert_evaluation');
    expect(row).toEqual({ rows: 1 });
  });

  it('R-OB3: that Postgres takes too long to count is logged once, and once more when it is over', async () => {
    const lines: string[] = [];
    const write = (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg);
    const db = await postgres().open({ patience: { ...defaultPatience, readMs: 100 } });
    const server = await new Stage(db, { log: createLog('info', { write }) }).server();
    await postgres().db.transaction(async (tx) => {
      await tx.query('lock table sluice.workers');
      for (let n = 0; n < 3; n += 1) await server.tick();
    });
    expect(lines).toEqual(['alerts are not evaluated: a read takes too long; trying again']);
    await server.tick();
    await server.tick();
    expect(lines.slice(1)).toEqual(['alerts are evaluated again']);
  });

  it('R-OB3: a server that lost its turn while it measured writes nothing', async () => {
    const stage = new Stage(postgres().db);
    await stage.tasks(1, { priority: 0, ageMs: 2 * minuteMs });
    const [slow, quick] = [await stage.server(), await stage.server()];
    // Each takes the turn from the other: with a ready queue in memory one process serves.
    await Promise.all([slow.tick(), quick.tick(), slow.tick(), quick.tick()]);
    await slow.tick();
    expect(await stage.told()).toEqual(['alert.firing high_priority_wait']);
  });

  it('R-OB3: another server takes over when the lease has lapsed, and at once when it was left', async () => {
    const [here, there] = [
      new Stage(postgres().db, { mode: 'redis' }),
      new Stage(postgres().db, { mode: 'redis' }),
    ];
    const [first, second] = [await here.server(), await there.server()];
    await first.tick();
    await here.tasks(1, { priority: 0, ageMs: 2 * minuteMs });
    await second.tick();
    expect(await here.told()).toEqual([]);
    there.clock.advance(30_001);
    await second.tick();
    expect(await here.told()).toHaveLength(1);
    await second.leave();
    await here.db.run('delete from sluice.tasks');
    await first.tick();
    expect(await here.told()).toHaveLength(2);
  });
});

describeEnginesOnPostgres('alerts of an engine', (server) => {
  it('R-OB9: a submit whose idempotency key belongs to a different task is counted for its alert', async () => {
    const engine = await server().open();
    await engine.submit({ taskType: 'a', idempotencyKey: 'k' });
    const other = engine.submit({ taskType: 'b', idempotencyKey: 'k' });
    expect(await refusal(other)).toBe('idempotency_conflict');
    await engine.close();
    const position = counterPositions.idempotency_conflict + 1;
    const rows = await server().sql(
      `select sum(counts[${position}])::int as conflicts from sluice.counters where queue = ''`,
    );
    expect(rows).toEqual([{ conflicts: 1 }]);
  });

  it('R-OB3: an engine that was not told to evaluate alerts does not', async () => {
    const engine = await server().open();
    expect((await engine.listAlerts()).evaluatedAt).toBeNull();
    const evaluating = await server().sql('select from sluice.alert_evaluation');
    expect(evaluating).toEqual([]);
  });
});
