import { expect, it } from 'vitest';

import {
  backToPending,
  claimOne,
  newTask,
  newTasks,
  rowOf,
  runOne,
  submitKnown,
  submitOne,
} from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import type { Lane } from '../domain/lane.js';
import type { Priority } from '../domain/priority.js';
import { changeTask } from './change-task.js';
import { endAttempts } from './end-attempts.js';
import { findNextDue, readLines, wakeDue, type WantedFromLine } from './feed-line.js';
import { submitTasks } from './submit-tasks.js';
import type { LinePosition, ReadyRow } from './task-row.js';

const now = new Date();
const later = (ms: number): Date => new Date(now.getTime() + ms);
const rich = {
  queue: 'gpt',
  taskType: 'chat/v1',
  capabilities: ['gpu'],
  priority: 'high',
  parametersJson: '{"b":1,"a":"\\u0000 \\ud800 \\"","n":1e400,"deep":{"list":[1,null]}}',
  timeoutSeconds: 61,
} as const;
const start: LinePosition = { eligibleAtMs: Number.NEGATIVE_INFINITY, seq: 0 };

describeOnEveryDatabase('readLines', (db) => {
  it('R-CH8: reads the oldest of each line, in order, and no more than asked for', async () => {
    const old = newTasks(3, { queue: 'a' });
    const young = newTasks(3, { queue: 'a' });
    const other = newTasks(2, { queue: 'b', priority: 'high', costJson: '{"t":2}' });
    await submitTasks(db(), young, later(1_000));
    await submitTasks(db(), [...other, ...old], now);
    const lines = await readLines(
      db(),
      [wanted('b', 'high', 9), wanted('none', 'low', 9), wanted('a', 'medium', 4)],
      later(5_000),
    );
    expect(lines.map(idsOf)).toEqual([idsOf(other), [], idsOf([...old, ...young.slice(0, 1)])]);
    expect(lines[0]?.[0]).toEqual({
      taskId: other[0]?.taskId,
      lane: { queue: 'b', taskType: 'chat', capabilities: [] },
      priority: 'high',
      ageMs: 5_000,
      eligibleAtMs: now.getTime(),
      seq: expect.any(Number) as number,
      cost: { t: 2 },
      known: null,
    });
  });

  it('R-ST1: what never left its line is told as whoever submitted it knows it', async () => {
    const tasks = [
      newTask({ ...rich, trace: 'trace', costJson: '{"tokens":5,"images":0.25}' }),
      newTask(rich),
    ];
    const claims = await submitKnown(db(), tasks, now);
    const window = { lane: laneOf(rich), priority: rich.priority };
    const [line = []] = await readLines(db(), [{ window, from: start, limit: 9 }], null, 1_000);
    expect(line.map(({ known }) => known)).toEqual(claims.map(({ known }) => known));
  });

  it('R-ST1: what left its line, is of a workflow, or is too large, is read when it is claimed', async () => {
    const retried = await runOne(db(), {}, {}, now);
    await endAttempts(db(), [backToPending(retried)], later(1));
    const due = newTask({ runAt: later(1) });
    const member = newTask({ workflowId: 'w' });
    const large = newTask({ parametersJson: `{"text":"${'x'.repeat(100)}"}` });
    const [changed, plain] = newTasks(2);
    if (changed === undefined || plain === undefined) throw new Error('no tasks');
    await submitTasks(db(), [due, member, large, changed, plain], now);
    await changeTask(db(), changed.taskId, { priority: 'high' }, later(1));
    await changeTask(db(), changed.taskId, { priority: 'medium' }, later(1));
    await wakeDue(db(), 9, later(10));
    const line = async (most: number) => {
      const [rows = []] = await readLines(db(), [wanted('default', 'medium', 9)], null, most);
      return new Map(rows.map(({ taskId, known }) => [taskId, known !== null]));
    };
    const unknown = [retried.taskId, due.taskId, member.taskId, changed.taskId];
    const areKnown = (others: boolean) => unknown.map((taskId) => [taskId, others] as const);
    expect(await line(100)).toEqual(
      new Map([...areKnown(false), [large.taskId, false], [plain.taskId, true]]),
    );
    expect(await line(1_000)).toEqual(
      new Map([...areKnown(false), [large.taskId, true], [plain.taskId, true]]),
    );
    expect(await line(0)).toEqual(
      new Map([...areKnown(false), [large.taskId, false], [plain.taskId, false]]),
    );
  });

  it('R-CH4: each has its own cost, also beside those that cost nothing', async () => {
    const tasks = [null, '{"t":2}', null, '{"t":3,"u":1}'].map((costJson) => newTask({ costJson }));
    await submitTasks(db(), tasks, now);
    const [line = []] = await readLines(db(), [wanted('default', 'medium', 9)], null);
    expect(idsOf(line)).toEqual(idsOf(tasks));
    expect(line.map(({ cost }) => cost)).toEqual([{}, { t: 2 }, {}, { t: 3, u: 1 }]);
  });

  it('R-CH8: goes on exactly where it is told to, to the microsecond', async () => {
    for (let n = 0; n < 20; n += 1) await submitTasks(db(), newTasks(3), null);
    const [all = []] = await readLines(db(), [wanted('default', 'medium', 100)], null);
    expect(all).toHaveLength(60);
    for (const [index, { eligibleAtMs, seq }] of all.entries()) {
      const from = (position: LinePosition) => [wanted('default', 'medium', 1, position)];
      const [[same] = []] = await readLines(db(), from({ eligibleAtMs, seq }), null);
      expect(same?.taskId).toBe(all[index]?.taskId);
      const [[next] = []] = await readLines(db(), from({ eligibleAtMs, seq: seq + 1 }), null);
      expect(next?.taskId).toBe(all[index + 1]?.taskId);
    }
  });

  it('R-CH3: a window is a lane: other types and capabilities have lines of their own', async () => {
    const mine = newTask({ capabilities: ['gpu', 'x"y'] });
    await submitTasks(
      db(),
      [
        mine,
        newTask(),
        newTask({ capabilities: ['gpu'] }),
        newTask({ capabilities: ['gpu', 'x"y'], taskType: 'other' }),
        newTask({ capabilities: ['gpu', 'x"y'], priority: 'low' }),
        newTask({ capabilities: ['gpu', 'x"y'], delaySeconds: 60 }),
      ],
      null,
    );
    const lane = { queue: 'default', taskType: 'chat', capabilities: ['gpu', 'x"y'] };
    const window = { lane, priority: 'medium' } as const;
    const lines = await readLines(db(), [{ window, from: start, limit: 100 }], null);
    expect(lines.map(idsOf)).toEqual([[mine.taskId]]);
  });

  it('reads what is queued alone, and changes nothing', async () => {
    const [queued, claimed] = [await submitOne(db()), await submitOne(db())];
    await claimOne(db(), claimed.taskId);
    const before = await rowOf(db(), queued.taskId);
    const lines = await readLines(db(), [wanted('default', 'medium', 10)], null);
    expect(lines.map(idsOf)).toEqual([[queued.taskId]]);
    expect(await rowOf(db(), queued.taskId)).toEqual(before);
  });
});

describeOnEveryDatabase('wakeDue', (db) => {
  it('R-CH11: those whose time has come get in line, the soonest first', async () => {
    const tasks = [300, 100, 200, 900].map((ms) => newTask({ runAt: later(ms) }));
    const idAt = (...places: number[]) => places.map((n) => tasks[n]?.taskId);
    await submitTasks(db(), tasks, now);
    expect(await wakeDue(db(), 10, later(99))).toEqual([]);
    expect(await findNextDue(db(), later(99))).toBe(1);
    expect(idsOf(await wakeDue(db(), 2, later(500)))).toEqual(idAt(1, 2));
    expect(await findNextDue(db(), later(500))).toBe(-200);
    expect(idsOf(await wakeDue(db(), 2, later(500)))).toEqual(idAt(0));
    expect(await findNextDue(db(), later(500))).toBe(400);
    expect(idsOf(await wakeDue(db(), 2, later(900)))).toEqual(idAt(3));
    expect(await findNextDue(db(), later(900))).toBeNull();
    const lines = await readLines(db(), [wanted('default', 'medium', 9)], null);
    expect(lines.map(idsOf)).toEqual([idAt(1, 2, 0, 3)]);
    expect(await rowOf(db(), tasks[3]?.taskId ?? newTask().taskId)).toMatchObject({
      status: 'queued',
      waits_for: null,
      queued_at: later(900),
    });
  });

  it('tells what an offer needs', async () => {
    const runAt = later(10);
    const lane = { queue: 'b', capabilities: ['gpu'] };
    const trace = 'a trace';
    const task = newTask({ runAt, ...lane, priority: 'high', costJson: '{"t":1}', trace });
    const [submitted] = await submitTasks(db(), [task], now);
    expect(await wakeDue(db(), 100, later(1_010))).toEqual([
      {
        taskId: task.taskId,
        lane: { taskType: 'chat', ...lane },
        priority: 'high',
        ageMs: 1_000,
        eligibleAtMs: runAt.getTime(),
        seq: submitted?.kind === 'created' ? submitted.seq : NaN,
        cost: { t: 1 },
        attempt: 0,
        trace: 'a trace',
      },
    ]);
  });

  it('R-CH2: a retry keeps its age', async () => {
    const held = await runOne(db(), {}, {}, now);
    await endAttempts(db(), [backToPending(held)], later(1_000));
    const [row] = await wakeDue(db(), 1, later(2_000));
    expect(row).toMatchObject({ taskId: held.taskId, ageMs: 2_000, eligibleAtMs: now.getTime() });
  });
});

describeOnPostgres('wakeDue', (postgres) => {
  it('R-CH11: two feeders at once wake no task twice', async () => {
    const pools = [postgres().db, await postgres().open()];
    await submitTasks(postgres().db, newTasks(1_000, { isOffered: false }), null);
    const woken = await Promise.all(
      pools.flatMap((db) =>
        [0, 1].map(async () => {
          const rows: ReadyRow[] = [];
          for (let n = 0; n < 10; n += 1) rows.push(...(await wakeDue(db, 50, null)));
          return idsOf(rows);
        }),
      ),
    );
    const ids = woken.flat();
    expect(ids).toHaveLength(new Set(ids).size);
    const rest = await wakeDue(postgres().db, 1_000, null);
    expect(ids.length + rest.length).toBe(1_000);
  });

  it('R-CH9: a locked row is passed over', async () => {
    const { db } = postgres();
    const locked = await submitOne(db, { isOffered: false });
    const free = await submitOne(db, { isOffered: false });
    await db.transaction(async (tx) => {
      await tx.query('select from sluice.tasks where id = $1 for update', [locked.taskId]);
      expect(idsOf(await wakeDue(db, 10, null))).toEqual([free.taskId]);
    });
  });
});

function idsOf(tasks: readonly { readonly taskId: string }[]): string[] {
  return tasks.map(({ taskId }) => taskId);
}

function laneOf({ queue, taskType, capabilities }: Lane): Lane {
  return { queue, taskType, capabilities };
}

function wanted(queue: string, priority: Priority, limit: number, from = start): WantedFromLine {
  return { window: { lane: { queue, taskType: 'chat', capabilities: [] }, priority }, from, limit };
}
