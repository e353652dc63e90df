import { expect, it } from 'vitest';
import { contextOf } from '../../test/integration/engine-parts.js';
import { submitOne } from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { TaskId } from '../domain/ids.js';
import type { TaskEvent } from '../protocol/events.js';
import { MemoryReadyQueue } from '../ready/memory/memory-ready-queue.js';
import { ManualClock, systemClock } from '../runtime/clock.js';
import { createLog } from '../runtime/log.js';
import { TransitionLog } from '../runtime/transition-log.js';
import type { Database } from '../store/database.js';
import { Checkpoints } from './checkpoints.js';
import { Counters } from './counters.js';
import { Line } from './line.js';
import { MinuteSummary } from './minute-summary.js';
import { QueueDirectory } from './queue-directory.js';

function begin(db: Database, mode: 'problems' | 'off' = 'problems') {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const write = (text: string) => void lines.push(JSON.parse(text) as (typeof lines)[number]);
  const log = createLog('info', { write });
  const clock = new ManualClock(Date.now());
  const transitions = new TransitionLog(log, { mode });
  const ready = new MemoryReadyQueue({ clock: systemClock });
  const context = { ...contextOf(db, ready), log, transitions, clock };
  const counters = new Counters(context);
  const note = (event: Partial<TaskEvent>, times = 1) => {
    for (let time = 0; time < times; time += 1) {
      counters.note({ ...anyEvent, at: new Date(clock.nowMs()), ...event });
    }
  };
  const queues = new QueueDirectory(context, new Checkpoints(context));
  const summary = new MinuteSummary(context, counters, new Line(context, queues, () => false));
  return { lines, clock, counters, note, summary };
}

const anyEvent = {
  taskId: '01900000-0000-7000-8000-000000000000' as TaskId,
  queue: 'a',
  taskType: 'chat',
  priority: 'medium',
  from: 'queued',
  to: 'executing',
  attempt: 1,
} as const;

describeOnEveryDatabase('the line of a minute', (db) => {
  it('R-OB8: counts what this process did since the last one, also what was written meanwhile', async () => {
    const { lines, clock, counters, note, summary } = begin(db());
    note({}, 7);
    expect(await summary.tick()).toBe(60_000);
    expect(lines).toEqual([]);
    note({ from: 'new', to: 'queued' }, 5);
    note({}, 4);
    note({ from: 'executing', to: 'completed', outcome: 'succeeded' }, 2);
    clock.advance(10_000);
    await counters.tick();
    note({ from: 'executing', to: 'dead_letter', outcome: 'failed' });
    note({ from: 'executing', to: 'pending', outcome: 'failed' });
    counters.add('refused', 3, 'a');
    await summary.tick();
    expect(lines).toMatchObject([
      {
        level: 30,
        msg: 'the last minute',
        submitted: 5,
        started: 4,
        ended: 3,
        completed: 2,
        dead_letter: 1,
        retried: 1,
        cancelled: 0,
        expired: 0,
        refused: 3,
        waiting: 0,
        oldest_seconds: 0,
      },
    ]);
  });

  it('R-OB8: is not written while nothing happens and nothing waits, and never with "off"', async () => {
    const { lines, note, summary } = begin(db());
    await summary.tick();
    await summary.tick();
    expect(lines).toEqual([]);
    note({});
    await summary.tick();
    await summary.tick();
    expect(lines).toHaveLength(1);
    const silent = begin(db(), 'off');
    await silent.summary.tick();
    silent.note({});
    await silent.summary.tick();
    expect(silent.lines).toEqual([]);
  });

  it('R-OB8: is written while tasks wait, with how long the oldest does', async () => {
    const { lines, clock, summary } = begin(db());
    await summary.tick();
    await submitOne(db());
    await submitOne(db());
    clock.advance(90_000);
    await summary.tick();
    expect(lines).toMatchObject([{ submitted: 0, waiting: 2 }]);
    expect(lines[0]?.oldest_seconds).toBeGreaterThanOrEqual(89);
  });
});
