import { expect, it, vi } from 'vitest';
import { contextOf } from '../../test/integration/engine-parts.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { countOf, type CounterName } from '../domain/counters.js';
import type { TaskId } from '../domain/ids.js';
import type { TaskEvent } from '../protocol/events.js';
import { MemoryReadyQueue } from '../ready/memory/memory-ready-queue.js';
import { ManualClock, systemClock } from '../runtime/clock.js';
import { allQueuesName, findCounts } from '../store/counters.js';
import type { Database } from '../store/database.js';
import { Counters } from './counters.js';

const beganMs = Date.UTC(2026, 0, 31);
const minuteMs = 60_000;

describeOnEveryDatabase('the counters of a process', (db) => {
  it('R-OB7: what another process counted is seen after a tick, and what this one counts at once', async () => {
    const { clock, process } = begin(db());
    const [here, elsewhere] = [process(), process()];
    here.note(completed('a', clock.nowMs()));
    elsewhere.note(completed('a', clock.nowMs()));
    expect(here.lastMinute(clock.nowMs(), 'a').completed).toBe(1);

    clock.advance(5_000);
    await elsewhere.tick();
    await here.tick();
    expect(here.lastMinute(clock.nowMs(), 'a').completed).toBe(2);
    expect(here.lastMinute(clock.nowMs()).completed).toBe(2);
    expect(here.averageDurationSeconds(clock.nowMs(), 'a')).toBe(2);

    here.note(completed('a', clock.nowMs()));
    expect(here.lastMinute(clock.nowMs(), 'a').completed).toBe(3);
    clock.advance(minuteMs);
    await here.tick();
    expect(here.lastMinute(clock.nowMs(), 'a').completed).toBe(0);
  });

  it('R-OB7: a process that begins anew knows what was counted before', async () => {
    const { clock, process } = begin(db());
    const before = process();
    before.note(completed('a', clock.nowMs()));
    before.note(lapsed('a', clock.nowMs()));
    await before.writeAll();
    const after = process();
    await after.tick();
    expect(after.lastMinute(clock.nowMs())).toEqual({ started: 0, completed: 1, failed: 1 });
    expect(await after.lastHour(clock.nowMs())).toEqual({ lapsed: 1, timedOut: 0, reoffered: 0 });
  });

  it('R-OB7: a write whose answer is lost counts once', async () => {
    const { clock, process } = begin(db());
    const counters = process();
    counters.note(completed('a', clock.nowMs()));
    counters.note(lapsed('a', clock.nowMs()));
    clock.advance(5_000);
    const query = vi.spyOn(db(), 'query').mockImplementationOnce(async (text, parameters) => {
      query.mockRestore();
      await db().query(text, parameters);
      throw new Error('the connection broke');
    });
    await expect(counters.tick()).rejects.toThrow('the connection broke');
    // Not written as far as it knows, and still counted, once.
    expect(counters.lastMinute(clock.nowMs(), 'a').completed).toBe(1);
    expect((await counters.lastHour(clock.nowMs())).lapsed).toBe(1);
    expect(await completedIn(counters, 'a')).toEqual([1]);
    counters.note(completed('a', clock.nowMs()));
    await counters.tick();
    clock.advance(5_000);
    await counters.tick();
    expect(counters.lastMinute(clock.nowMs(), 'a').completed).toBe(2);
    expect(await storedTotal(db(), 'completed')).toBe(2);
  });

  it('R-OB7: at the end of a process nothing is left unwritten, also after writes that failed', async () => {
    const { clock, process } = begin(db());
    const counters = process();
    counters.note(completed('a', clock.nowMs()));
    clock.advance(5_000);
    const query = vi.spyOn(db(), 'query');
    const fails = () => query.mockRejectedValueOnce(new Error('the connection broke'));
    fails();
    await expect(counters.tick()).rejects.toThrow('the connection broke');
    counters.note(completed('a', clock.nowMs()));
    clock.advance(5_000);
    counters.note(completed('a', clock.nowMs()));
    fails();
    await counters.writeAll();
    expect(await storedTotal(db(), 'completed')).toBe(3);
    query.mockRestore();
  });

  it('R-OB7: a process ends although Postgres takes no counts any more', async () => {
    const { clock, process } = begin(db());
    const counters = process();
    counters.note(completed('a', clock.nowMs()));
    const query = vi.spyOn(db(), 'query').mockRejectedValue(new Error('away'));
    await expect(counters.writeAll()).rejects.toThrow('away');
    query.mockRestore();
  });

  it('R-OB7: counts of a span have what is not written yet, in the piece that it belongs to', async () => {
    const { clock, process } = begin(db());
    const [here, elsewhere] = [process(), process()];
    elsewhere.note(completed('a', clock.nowMs()));
    await elsewhere.writeAll();
    here.note(completed('a', clock.nowMs()));
    clock.advance(minuteMs);
    here.note(completed('a', clock.nowMs()));
    here.note(completed('b', clock.nowMs()));
    expect(await completedIn(here, 'a')).toEqual([2, 1]);
    await here.tick();
    await here.writeAll();
    expect(await completedIn(here, 'a')).toEqual([2, 1]);
    expect(await completedIn(here, allQueuesName)).toEqual([2, 2]);
  });

  it('R-OB9: tasks that were assigned and never started are counted', async () => {
    const { clock, process } = begin(db());
    const counters = process();
    const returned = { ...task, queue: 'a', to: 'pending', outcome: 'released' } as const;
    counters.note({ ...returned, errorCode: 'NEVER_STARTED', at: new Date(clock.nowMs()) });
    counters.note({ ...returned, at: new Date(clock.nowMs()) });
    await counters.writeAll();
    expect(await storedTotal(db(), 'never_started')).toBe(1);
    expect(await storedTotal(db(), 'released')).toBe(2);
  });

  it('R-AD7: queues beyond the most that are counted one by one count in the sum', async () => {
    const { clock, process } = begin(db());
    const counters = process(100);
    for (let n = 0; n < 500; n++) counters.note(completed(`queue-${n}`, clock.nowMs()));
    expect(counters.lastMinute(clock.nowMs(), 'queue-99').completed).toBe(1);
    expect(counters.lastMinute(clock.nowMs(), 'queue-100').completed).toBe(0);
    expect(counters.lastMinute(clock.nowMs()).completed).toBe(500);
    clock.advance(5_000);
    counters.note(completed('queue-499', clock.nowMs()));
    expect(counters.lastMinute(clock.nowMs(), 'queue-499').completed).toBe(1);
    await counters.writeAll();
    expect(await storedTotal(db(), 'completed')).toBe(501);
    const [row] = await db().query('select count(*)::integer as rows from sluice.counters');
    expect(row).toEqual({ rows: 103 });
  });

  it('R-AD7: while Postgres takes no counts, memory is bounded and nothing goes uncounted', async () => {
    const { clock, process } = begin(db());
    const counters = process();
    for (let n = 0; n < 50; n++) {
      counters.note(completed('a', clock.nowMs()));
      clock.advance(5_000);
    }
    await counters.writeAll();
    const [row] = await db().query(
      `select count(*)::integer as rows from sluice.counters where queue = 'a'`,
    );
    expect(row).toEqual({ rows: 6 });
    expect(await storedTotal(db(), 'completed')).toBe(50);
  });
});

function begin(db: Database) {
  const clock = new ManualClock(beganMs);
  const context = { ...contextOf(db, new MemoryReadyQueue({ clock: systemClock })), clock };
  return { clock, process: (maxQueues?: number) => new Counters(context, maxQueues) };
}

/** In the first minutes. */
async function completedIn(counters: Counters, queue: string): Promise<number[]> {
  const span = { fromMs: beganMs, toMs: beganMs + 10 * minuteMs, stepSeconds: 60 };
  const found = await counters.findCounts(queue, span);
  return found.map(({ counts }) => countOf(counts, 'completed'));
}

async function storedTotal(db: Database, name: CounterName): Promise<number> {
  const day = { fromMs: beganMs, toMs: beganMs + 24 * 3_600_000, stepSeconds: 86_400 };
  const { pieces } = await findCounts(db, allQueuesName, day);
  const [span] = pieces;
  return span === undefined ? 0 : countOf(span.counts, name);
}

const task = {
  taskId: '0197f0c4-8a3b-7c21-9d55-3f0f5a1c2b3d' as TaskId,
  taskType: 'chat',
  priority: 'medium',
  from: 'executing',
  attempt: 1,
  durationMs: 2_000,
} as const;

function completed(queue: string, atMs: number): TaskEvent {
  return { ...task, queue, to: 'completed', outcome: 'succeeded', at: new Date(atMs) };
}

function lapsed(queue: string, atMs: number): TaskEvent {
  return { ...task, queue, to: 'pending', outcome: 'lapsed', at: new Date(atMs) };
}
