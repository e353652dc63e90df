import { expect, it } from 'vitest';
import { countOf, type CounterName } from '../../src/domain/counters.js';
import { closed, type Circuit } from '../../src/domain/circuit.js';
import { ActiveWorkers } from '../../src/engine/active-workers.js';
import type { EngineContext } from '../../src/engine/context.js';
import { Counters } from '../../src/engine/counters.js';
import type { LineSnapshot, QueueLine } from '../../src/engine/line.js';
import { Sampling, samplingMs } from '../../src/engine/sampling.js';
import { AgeSketch } from '../../src/domain/age-sketch.js';
import type { HeldBackBy } from '../../src/ready/ready-queue.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { allQueuesName } from '../../src/store/counters.js';
import type { Database } from '../../src/store/database.js';
import { submitTasks } from '../../src/store/submit-tasks.js';
import { registerWorker } from '../../src/store/workers.js';
import { newTasks, newWorkerId } from '../store/lifecycle.js';
import { seedTask } from '../store/seed.js';
import { describeOnEveryDatabase } from '../store/support.js';
import { contextOf } from './engine-parts.js';

const beganMs = Date.UTC(2030, 0, 1, 12);
const none = { count: 0, oldestAgeMs: null };

interface Waiting {
  readonly depth: number;
  readonly heldBackBy?: HeldBackBy;
  readonly oldestAgeMs?: number;
}

function lineOf({ depth, heldBackBy, oldestAgeMs = 60_000 }: Waiting): QueueLine {
  return {
    depth: { high: 0, medium: depth, low: 0 },
    waiting: { high: none, medium: { count: depth, oldestAgeMs }, low: none },
    backlog: 0,
    running: 0,
    heldBackBy: heldBackBy ?? null,
  };
}

/** Servers of one cluster that all see the same line, as with Redis. */
class Stage {
  readonly clock = new ManualClock(beganMs);
  readonly context: EngineContext;
  readonly circuits = new Map<string, Circuit>();
  line: Readonly<Record<string, Waiting>> = {};

  constructor(db: Database) {
    const ready = new MemoryReadyQueue({ clock: this.clock });
    this.context = { ...contextOf(db, ready), clock: this.clock, mode: 'redis' };
  }

  server() {
    const counters = new Counters(this.context);
    const sampling = new Sampling(this.context, {
      active: new ActiveWorkers(this.context),
      line: { snapshot: async () => this.#snapshot() },
      queues: { circuitOf: (queue) => this.circuits.get(queue) ?? closed },
      counters,
    });
    return { counters, sampling };
  }

  #snapshot(): LineSnapshot {
    const queues = new Map(Object.entries(this.line).map(([name, one]) => [name, lineOf(one)]));
    const ages = { high: new AgeSketch(), medium: new AgeSketch(), low: new AgeSketch() };
    return {
      queues,
      ages,
      total: { high: none, medium: none, low: none },
      running: 0,
      isWhole: true,
    };
  }

  /** So many samples after a first one, by each server that has its turn. */
  async sample(servers: readonly Pick<ReturnType<Stage['server']>, 'sampling'>[], times: number) {
    for (let time = 0; time <= times; time += 1) {
      for (const { sampling } of servers) await sampling.tick();
      if (time < times) this.clock.advance(samplingMs);
    }
  }

  /** As any server reads it, over all servers. */
  async read(counters: Counters, queue: string, ...names: CounterName[]): Promise<number[]> {
    const toMs = this.clock.nowMs() + 60_000;
    const span = { fromMs: beganMs, toMs, stepSeconds: 3_600 };
    const pieces = await counters.findCounts(queue, span);
    return names.map((name) => pieces.reduce((sum, { counts }) => sum + countOf(counts, name), 0));
  }
}

describeOnEveryDatabase('why nothing can be taken, over time', (db) => {
  it('R-OB1: one of several servers samples, and another goes on when it leaves', async () => {
    const stage = new Stage(db());
    const [one, other] = [stage.server(), stage.server()];
    stage.line = { gpt: { depth: 10, heldBackBy: 'rate_limit' } };
    await stage.sample([one, other], 4);
    await one.sampling.leave();
    await stage.sample([other], 2);
    await one.counters.writeAll();
    await other.counters.writeAll();
    const names = ['held_rate_limit_ms', 'depth_ms', 'no_worker_ms'] as const;
    const spanMs = (4 + 2) * samplingMs;
    for (const queue of ['gpt', allQueuesName]) {
      expect(await stage.read(one.counters, queue, ...names)).toEqual([spanMs, 10 * spanMs, 0]);
    }
  });

  it('R-OB1: by cause: an operator, a circuit, a 429, slots', async () => {
    const stage = new Stage(db());
    const { counters, sampling } = stage.server();
    const open = { kind: 'open', trips: 0, slots: 1, untilMs: 0, probesAtMs: 0 } as const;
    stage.circuits.set('pushed', { ...open, reason: 'rate_limited' });
    stage.circuits.set('down', { ...open, reason: 'unavailable' });
    stage.line = {
      paused: { depth: 1, heldBackBy: 'pause' },
      pushed: { depth: 1, heldBackBy: 'pause' },
      down: { depth: 1, heldBackBy: 'pause' },
      full: { depth: 1, heldBackBy: 'max_concurrency' },
    };
    await stage.sample([{ sampling }], 1);
    expect(await stage.read(counters, 'paused', 'held_paused_ms')).toEqual([samplingMs]);
    expect(await stage.read(counters, 'pushed', 'held_pushed_back_ms')).toEqual([samplingMs]);
    expect(await stage.read(counters, 'down', 'held_circuit_open_ms')).toEqual([samplingMs]);
    expect(await stage.read(counters, 'full', 'held_max_concurrency_ms')).toEqual([samplingMs]);
  });

  it('R-AD7: counts the 200 deepest queues by themselves, and the others in the sum', async () => {
    const stage = new Stage(db());
    const { counters, sampling } = stage.server();
    const names = Array.from({ length: 300 }, (_, n) => [`q${n}`, { depth: n + 1 }] as const);
    stage.line = Object.fromEntries(
      names.map(([name, one]) => [name, { ...one, heldBackBy: 'pause' }]),
    );
    await stage.sample([{ sampling }], 1);
    const heldIn = async (queue: string) =>
      (await stage.read(counters, queue, 'held_paused_ms'))[0];
    expect([await heldIn('q299'), await heldIn('q100'), await heldIn('q99')]).toEqual([
      samplingMs,
      samplingMs,
      0,
    ]);
    expect(await heldIn(allQueuesName)).toBe(300 * samplingMs);
    expect(await stage.read(counters, allQueuesName, 'depth_ms')).toEqual([
      ((300 * 301) / 2) * samplingMs,
    ]);
  });

  it('R-OB1: no worker: nobody can do any of it, or all who can are full', async () => {
    const stage = new Stage(db());
    await submitTasks(db(), newTasks(2, { queue: 'gpt' }), new Date(beganMs));
    stage.line = { gpt: { depth: 2 } };
    const sampled = async (): Promise<number> => {
      const { counters, sampling } = stage.server();
      await stage.sample([{ sampling }], 1);
      await sampling.leave();
      stage.clock.advance(samplingMs);
      return (await stage.read(counters, 'gpt', 'no_worker_ms'))[0] ?? 0;
    };
    expect(await sampled()).toBe(samplingMs);
    await register('train');
    expect(await sampled()).toBe(samplingMs);
    const workerId = await register('chat');
    expect(await sampled()).toBe(0);
    await seedTask(db(), { status: 'executing', queue: 'other', workerId });
    expect(await sampled()).toBe(samplingMs);
    stage.line = { gpt: { depth: 2, oldestAgeMs: 10 } };
    expect(await sampled()).toBe(0);

    async function register(taskType: string) {
      const workerId = newWorkerId();
      await registerWorker(
        db(),
        workerId,
        { capacity: 1, taskTypes: [taskType] },
        new Date(beganMs),
      );
      return workerId;
    }
  });

  it('does not know of the time before its first sample, nor of more than 30 s of silence', async () => {
    const stage = new Stage(db());
    const { counters, sampling } = stage.server();
    stage.line = { gpt: { depth: 1, heldBackBy: 'pause' } };
    await sampling.tick();
    expect(await stage.read(counters, 'gpt', 'held_paused_ms')).toEqual([0]);
    stage.clock.advance(3_600_000);
    await sampling.tick();
    expect(await stage.read(counters, 'gpt', 'held_paused_ms')).toEqual([30_000]);
  });
});
