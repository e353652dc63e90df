import { describe, expect, it } from 'vitest';

import { check } from '../../lab/chaos/checker.js';
import type { Attempt, ChaosHistory, TaskRow } from '../../lab/chaos/history.js';
import { drawSchedule } from '../../lab/chaos/schedule.js';

/** One task, from its attempts. */
function row(taskId: string, attempts: readonly Attempt[], more: Partial<TaskRow> = {}): TaskRow {
  return {
    taskId,
    key: `key-${taskId}`,
    queue: 'plain',
    status: 'completed',
    seq: 1,
    endedAt: attempts.at(-1)?.to ?? null,
    lease: `lease-${taskId}`,
    resultOf: attempts.find(({ outcome }) => outcome === 'succeeded')?.attempt ?? null,
    attempts,
    ...more,
  };
}

function attempt(from: number, to: number, more: Partial<Attempt> = {}): Attempt {
  return { attempt: 1, worker: 'worker-0', from, to, outcome: 'succeeded', ...more };
}

const cutShort = { outcome: 'lapsed' };
const second = { attempt: 2, worker: 'worker-1' };

const rows = {
  plain: row('plain', [attempt(0, 100)]),
  // Its worker is killed in the middle.
  killed: row('killed', [attempt(1_000, 5_000, cutShort), attempt(5_100, 5_200, second)]),
  // It fails once, as planned.
  failing: row('failing', [
    attempt(20_000, 20_100, { outcome: 'failed' }),
    attempt(21_000, 21_100, second),
  ]),
  cancelled: row('cancelled', [attempt(30_000, 30_500, { outcome: 'cancelled' })], {
    status: 'cancelled',
    lease: null,
  }),
  first: row('first', [attempt(40_000, 40_500)]),
  next: row('next', [attempt(40_500, 41_000)]),
  last: row('last', [attempt(41_000, 41_500)]),
  // Four in four seconds.
  limited: [0, 600, 1_200, 1_800].map((from) =>
    row(`limited-${from}`, [attempt(50_000 + from, 50_010 + from)], { queue: 'limited' }),
  ),
  // Two at once.
  narrow: [
    row('narrow-0', [attempt(60_000, 61_000)], { queue: 'narrow' }),
    row('narrow-1', [attempt(60_500, 61_500)], { queue: 'narrow' }),
    row('narrow-2', [attempt(61_000, 62_000)], { queue: 'narrow' }),
  ],
};

const workflows = new Map([
  ['first', { id: 'workflow', place: 0 }],
  ['next', { id: 'workflow', place: 1 }],
  ['last', { id: 'workflow', place: 2 }],
]);

/** Sound, but for what is planted in it. */
function history(
  planted: Partial<typeof rows> = {},
  more: Partial<ChaosHistory> = {},
): ChaosHistory {
  const all = Object.values({ ...rows, ...planted }).flat();
  return {
    acknowledged: Object.values(rows)
      .flat()
      .map(({ taskId }) => ({
        key: `key-${taskId}`,
        taskId,
        fails: taskId === 'failing' ? 1 : 0,
        workflow: workflows.get(taskId) ?? null,
      })),
    cancels: new Map([['cancelled', 'acknowledged']]),
    rows: all,
    begins: all.flatMap(({ taskId, attempts }) =>
      attempts.map(({ attempt: number, from }) => ({
        taskId,
        attempt: number,
        worker: 'worker-0',
        at: from,
      })),
    ),
    completions: all.flatMap(({ taskId, lease }) => (lease === null ? [] : [{ taskId, lease }])),
    faults: [{ kind: 'kill worker', target: 'worker-0', from: 2_000, to: 3_000 }],
    limits: [{ queue: 'limited', most: 4, windowMs: 4_000, burst: null }],
    limitsUntil: 100_000,
    slots: [{ queue: 'narrow', most: 2 }],
    retunes: [],
    serverOf: new Map([
      ['worker-0', 'server-0'],
      ['worker-1', 'server-1'],
    ]),
    ...more,
  };
}

const rulesOf = (given: ChaosHistory) => check(given).findings.map(({ rule }) => rule);

describe('R-RE8: the checker of a chaos run', () => {
  it('finds nothing in a sound history, and counts what ran again with its reason', () => {
    const { findings, repeats } = check(history());
    expect(findings).toEqual([]);
    expect(repeats.again).toBe(2);
    expect(repeats.reasons).toEqual(
      new Map([
        ['kill worker', 1],
        ['planned', 1],
      ]),
    );
  });

  it('finds a task that was acknowledged and is unknown, or has not ended', () => {
    const unknown = history();
    const gone = { ...unknown, rows: unknown.rows.filter(({ taskId }) => taskId !== 'plain') };
    expect(rulesOf({ ...gone, completions: [] })).toEqual(['lost']);
    const waiting = row('plain', [], { status: 'queued', lease: null });
    expect(rulesOf(history({ plain: waiting }))).toEqual(['lost']);
  });

  it('finds a task that was completed twice: two rows, or two results that were accepted', () => {
    const sound = history();
    expect(rulesOf({ ...sound, rows: [...sound.rows, rows.plain] })).toEqual(['completed twice']);
    const another = { taskId: 'killed', lease: 'an older lease' };
    expect(rulesOf({ ...sound, completions: [...sound.completions, another] })).toEqual([
      'completed twice',
    ]);
    // The same result sent twice is accepted twice.
    const repeated = { taskId: 'killed', lease: 'lease-killed' };
    expect(rulesOf({ ...sound, completions: [...sound.completions, repeated] })).toEqual([]);
  });

  it('finds a result that was accepted and is not there, or that is of another attempt', () => {
    const sound = history();
    const completions = [{ taskId: 'plain', lease: 'another lease' }];
    expect(rulesOf({ ...sound, completions })).toEqual(['result not kept']);
    // A frozen worker woke up, and its late result went in for that of the next attempt.
    const killed = { ...rows.killed, resultOf: 1 };
    expect(rulesOf(history({ killed }))).toEqual(['result not kept']);
  });

  it('finds a key with two tasks, by the answers or in the database', () => {
    const sound = history();
    const [task] = sound.acknowledged;
    if (task === undefined) throw new Error('there are tasks');
    const twin = { ...task, key: 'key-plain', taskId: 'twin' };
    const twinRow = row('twin', [attempt(70_000, 70_100)]);
    const both = { ...sound, acknowledged: [...sound.acknowledged, twin] };
    expect(rulesOf({ ...both, rows: [...sound.rows, twinRow] })).toEqual(['one key, two tasks']);
    const hidden = { ...twinRow, key: 'key-plain' };
    expect(rulesOf({ ...sound, rows: [...sound.rows, hidden] })).toEqual(['one key, two tasks']);
  });

  it('finds one start too many in a window, but not one that may have been granted before', () => {
    const extra = row('extra', [attempt(50_900, 50_910)], { queue: 'limited' });
    const over = { limited: [...rows.limited, extra] };
    expect(rulesOf(history(over))).toEqual(['over the limit']);
    // A frozen server claims what it was granted before: by the claim alone it is one too many.
    const frozen = { kind: 'freeze server', target: 'server-1', from: 45_000, to: 49_900 };
    const faults = [...history().faults, frozen];
    expect(rulesOf(history(over, { faults }))).toEqual([]);
    expect(rulesOf(history(over, { limitsUntil: 50_500 }))).toEqual([]);
  });

  it('finds a bucket that was full twice, though no window is over', () => {
    const limits = [{ queue: 'limited', most: 9, windowMs: 10_000, burst: 3 }];
    expect(rulesOf(history({}, { limits }))).toEqual([]);
    const full = [50_100, 50_200, 50_300].map((from) =>
      row(`full-${from}`, [attempt(from, from + 10)], { queue: 'limited' }),
    );
    const over = history({ limited: [...rows.limited, ...full] }, { limits });
    expect(rulesOf(over)).toEqual(['over the limit']);
  });

  it('finds more at once than there are slots, but not what reached nobody', () => {
    const lapsed = attempt(60_600, 60_700, { outcome: 'lapsed' });
    const third = row('third', [lapsed, attempt(63_000, 63_100, second)], { queue: 'narrow' });
    const killed = { kind: 'kill worker', target: 'worker-0', from: 60_650, to: 60_660 };
    const faults = [...history().faults, killed];
    const over = history({ narrow: [...rows.narrow, third] }, { faults });
    expect(rulesOf(over)).toEqual(['too many at once']);
    const begins = over.begins.filter((one) => one.taskId !== 'third' || one.attempt !== 1);
    expect(rulesOf({ ...over, begins })).toEqual([]);
  });

  it('finds a start beyond a max_concurrency that was lowered, but not what ran before', () => {
    const retune = { queue: 'narrow', most: 1, from: 60_200, to: 60_900 };
    const beyond = check(history({}, { retunes: [retune] }));
    expect(beyond.findings.map(({ rule }) => rule)).toEqual(['change not kept']);
    expect(beyond.startsAfterRetunes).toBe(1);
    const afterStarts = { ...retune, from: 60_600 };
    expect(rulesOf(history({}, { retunes: [afterStarts] }))).toEqual([]);
  });

  it('finds a workflow out of order', () => {
    const early = row('next', [attempt(39_000, 39_500)]);
    expect(rulesOf(history({ next: early }))).toEqual(['out of order']);
    // Between two attempts of the one before.
    const first = row('first', [
      attempt(38_000, 38_500, { outcome: 'failed' }),
      attempt(40_000, 40_500, second),
    ]);
    const planted = history({ first, next: early });
    const acknowledged = planted.acknowledged.map((task) =>
      task.taskId === 'first' ? { ...task, fails: 1 } : task,
    );
    expect(rulesOf({ ...planted, acknowledged })).toEqual(['out of order']);
  });

  it('finds two members of a workflow at once', () => {
    const next = row('next', [attempt(40_400, 41_000)]);
    expect(rulesOf(history({ next }))).toEqual(['two members at once']);
  });

  it('finds what ran again though no fault met it', () => {
    const killed = rows.killed;
    const rule = ['run again without a fault'];
    expect(rulesOf(history({}, { faults: [] }))).toEqual(rule);
    // A fault of a worker and a server that it has nothing to do with.
    const elsewhere = [
      { kind: 'kill worker', target: 'worker-1', from: 2_000, to: 3_000 },
      { kind: 'kill server', target: 'server-1', from: 2_000, to: 3_000 },
    ];
    expect(rulesOf(history({}, { faults: elsewhere }))).toEqual(rule);
    const before = [{ kind: 'kill worker', target: 'worker-0', from: -2_000, to: -1_000 }];
    expect(rulesOf(history({}, { faults: before }))).toEqual(rule);
    // A handler that fails though it was not to.
    const [first, ...rest] = killed.attempts;
    if (first === undefined) throw new Error('it has attempts');
    const failing = row('killed', [{ ...first, outcome: 'failed' }, ...rest]);
    expect(rulesOf(history({ killed: failing }))).toEqual(rule);
  });

  it('finds an attempt whose handler began twice', () => {
    const sound = history();
    const again = { taskId: 'plain', attempt: 1, worker: 'worker-2', at: 50 };
    expect(rulesOf({ ...sound, begins: [...sound.begins, again] })).toEqual(['begun twice']);
  });

  it('finds a cancel that was not kept, and an end that nobody asked for', () => {
    const cancelled = row('cancelled', [attempt(30_000, 30_500)]);
    expect(rulesOf(history({ cancelled }))).toEqual(['cancel not kept']);
    expect(rulesOf(history({}, { cancels: new Map() }))).toEqual(['ended for no reason']);
    const plain = row('plain', [], { status: 'dead_letter', lease: null });
    expect(rulesOf(history({ plain }))).toEqual(['ended for no reason']);
  });
});

describe('R-RE8: the schedule of a chaos run', () => {
  const plan = { engine: 'postgres', faults: 300, durationMs: 600_000, leaseMs: 3_000 } as const;

  it('is the same for the same seed, and another for another', () => {
    expect(drawSchedule({ ...plan, seed: 7 })).toEqual(drawSchedule({ ...plan, seed: 7 }));
    expect(drawSchedule({ ...plan, seed: 7 })).not.toEqual(drawSchedule({ ...plan, seed: 8 }));
  });

  it('has every kind as often, in the order of their times', () => {
    const schedule = drawSchedule({ ...plan, seed: 7 });
    const times = schedule.map(({ atMs }) => atMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    const kinds = schedule.map(({ kind }) => kind);
    expect(new Set(kinds).size).toBe(15);
    expect(kinds.filter((kind) => kind === 'kill postgres')).toHaveLength(20);
  });

  it('has nothing to kill on embedded but servers and workers', () => {
    const kinds = drawSchedule({ ...plan, engine: 'embedded', seed: 7 }).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(
      new Set([
        'kill server',
        'freeze server',
        'kill worker',
        'freeze worker',
        'cut worker',
        'mislead worker',
      ]),
    );
  });
});
