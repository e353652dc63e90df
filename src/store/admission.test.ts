import fc from 'fast-check';
import { expect, it } from 'vitest';

import { allQueues, type Ceiling } from '../domain/admission.js';
import type { TaskId } from '../domain/ids.js';
import {
  claimOf,
  completionOf,
  newKey,
  newTask,
  newTasks,
  newWorkerId,
  toDeadLetter,
} from '../../test/store/lifecycle.js';
import {
  describeOnEveryDatabase,
  describeOnPostgres,
  type TestPostgres,
} from '../../test/store/support.js';
import {
  beginReconciling,
  findUnsetCeilings,
  noCeilings,
  readStandings,
  reconcileAdmission,
  setCeiling,
  type Ceilings,
} from './admission.js';
import { cancelTasks } from './cancel-tasks.js';
import { claimTasks, type ClaimedRow } from './claim-tasks.js';
import type { Database } from './database.js';
import { endAttempts } from './end-attempts.js';
import { expireTasks } from './expire-tasks.js';
import { completeTasks } from './finish-tasks.js';
import type { NewTask, Submitted } from './new-task.js';
import { ensureQueues, putQueue } from './queues.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import { replayTasks } from './replay-tasks.js';
import { submitTasks } from './submit-tasks.js';

function ceilings(high: number, medium = high, low = medium): Ceilings {
  const all: Ceiling = { high, medium, low };
  let isNear = false;
  return {
    all,
    maxActiveOf: () => null,
    isNear: () => isNear,
    noteReached: () => {
      isNear = true;
    },
  };
}

async function activeIn(db: Database, scope = allQueues): Promise<number | undefined> {
  return (await readStandings(db, [scope], null)).get(scope)?.active;
}

async function countTasks(db: Database, queue: string | null = null): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    `select count(*) as n from sluice.tasks
     where status in ('pending', 'queued', 'assigned', 'executing')
       and ($1::text is null or queue = $1)`,
    [queue],
  );
  return row?.n ?? NaN;
}

const kinds = (answers: readonly Submitted[]) => answers.map(({ kind }) => kind);
const accepted = (answers: readonly Submitted[]) =>
  answers.filter(({ kind }) => kind === 'created').length;

async function claimAll(db: Database, taskIds: readonly TaskId[]): Promise<ClaimedRow[]> {
  return claimTasks(
    db,
    taskIds.map((id) => claimOf(id)),
    0,
    30_000,
    null,
  );
}

describeOnEveryDatabase('active tasks', (db) => {
  it('R-AD1: are let in up to the ceiling, and told what they met', async () => {
    const answers = await submitTasks(db(), newTasks(20), null, ceilings(15));
    expect(accepted(answers)).toBe(15);
    expect(answers[15]).toMatchObject({
      kind: 'refused',
      reached: { scope: allQueues, limit: 15, active: 15 },
    });
    expect(await activeIn(db())).toBe(15);
    expect(await countTasks(db())).toBe(15);
  });

  it('R-AD2: are refused from 80, 90 and 100 of 100, the least urgent first', async () => {
    const limits = ceilings(100, 90, 80);
    for (const [priority, upTo] of [
      ['low', 80],
      ['medium', 90],
      ['high', 100],
    ] as const) {
      await submitTasks(db(), newTasks(120, { priority }), null, limits);
      expect(await activeIn(db())).toBe(upTo);
    }
    const passing = newTasks(3, { priority: 'low', passesCeilings: true });
    expect(accepted(await submitTasks(db(), passing, null, limits))).toBe(3);
    expect(await activeIn(db())).toBe(103);
  });

  it('R-AD1: leave their place however they end, and take one when they are replayed', async () => {
    const tasks = newTasks(6);
    const [done, dead, cancelled, expiring, , member] = tasks.map(({ taskId }) => taskId) as [
      TaskId,
      TaskId,
      TaskId,
      TaskId,
      TaskId,
      TaskId,
    ];
    tasks[3] = newTask({ taskId: expiring, dispatchDeadlineSeconds: 1 });
    tasks[5] = newTask({ taskId: member, workflowId: 'w' });
    await submitTasks(db(), tasks, null, ceilings(100));
    expect(await activeIn(db())).toBe(6);

    const claimed = await claimAll(db(), [done, dead]);
    const [one, other] = [done, dead].map((id) => claimed.find(({ taskId }) => taskId === id));
    if (one === undefined || other === undefined) throw new Error('not claimed');
    await completeTasks(db(), [completionOf(one)], null);
    expect(await activeIn(db())).toBe(5);
    await endAttempts(db(), [toDeadLetter(other)], null);
    expect(await activeIn(db())).toBe(4);
    await cancelTasks(db(), [cancelled, member], null);
    expect(await activeIn(db())).toBe(2);
    await expireTasks(db(), 10, new Date(Date.now() + 60_000));
    expect(await activeIn(db())).toBe(1);

    await replayTasks(db(), [dead, cancelled, expiring], {}, null);
    expect(await activeIn(db())).toBe(4);
    await replayTasks(db(), [member], {}, null);
    expect(await activeIn(db())).toBe(5);
    expect(await countTasks(db())).toBe(5);
    expect(await reconcileAdmission(db())).toEqual([]);
  });

  it('R-AD3: a repeat of a key is answered at the ceiling, and needs no place', async () => {
    const first = newTasks(2).map((task, n) => ({ ...task, idempotency: newKey(`k${n}`) }));
    await submitTasks(db(), first, null, ceilings(3));
    const again = first.map(({ idempotency }) => newTask({ idempotency }));
    const fresh = [newTask({ idempotency: newKey('k2') }), newTask({ idempotency: newKey('k2') })];
    const beyond = newTask({ idempotency: newKey('k3') });
    expect(kinds(await submitTasks(db(), [...again, ...fresh, beyond], null, ceilings(3)))).toEqual(
      ['existing', 'existing', 'created', 'existing', 'refused'],
    );
    expect(kinds(await submitTasks(db(), again.map(withNewId), null, ceilings(3)))).toEqual([
      'existing',
      'existing',
    ]);
    const conflict = newTask({ idempotency: newKey('k0', 'another body') });
    expect(kinds(await submitTasks(db(), [conflict], null, ceilings(3)))).toEqual(['conflict']);
    // What was refused left no key behind.
    expect(kinds(await submitTasks(db(), [withNewId(beyond)], null, ceilings(4)))).toEqual([
      'created',
    ]);
  });

  it('R-AD1: members of workflows are counted and refused like all others', async () => {
    const members = newTasks(4, { workflowId: 'w' });
    const answers = await submitTasks(db(), [...members, ...newTasks(2)], null, ceilings(5));
    expect(accepted(answers)).toBe(5);
    expect(await activeIn(db())).toBe(5);
    const more = await submitTasks(db(), newTasks(2, { workflowId: 'w' }), null, ceilings(5));
    expect(kinds(more)).toEqual(['refused', 'refused']);
  });

  it('R-AD1: a queue has a ceiling of its own from when it is set, whoever knows of it', async () => {
    await submitTasks(db(), newTasks(3, { queue: 'a' }), null);
    await setCeiling(db(), 'a', 5);
    expect(await activeIn(db(), 'a')).toBe(3);
    const batch = [...newTasks(4, { queue: 'a' }), ...newTasks(2, { queue: 'b' })];
    const answers = await submitTasks(db(), batch, null, noCeilings);
    expect(kinds(answers)).toEqual([
      ...['created', 'created', 'refused', 'refused'],
      ...['created', 'created'],
    ]);
    expect(answers[3]).toMatchObject({ reached: { scope: 'a', limit: 5, active: 5 } });

    await setCeiling(db(), 'a', 6);
    expect(accepted(await submitTasks(db(), newTasks(3, { queue: 'a' }), null))).toBe(1);
    const known = { ...noCeilings, maxActiveOf: () => 6 };
    await setCeiling(db(), 'a', null);
    expect(accepted(await submitTasks(db(), newTasks(3, { queue: 'a' }), null, known))).toBe(3);
    expect(await activeIn(db(), 'a')).toBeUndefined();
    expect(await activeIn(db())).toBe(11);
  });

  it('R-AD1: the share of each priority is that of the ceiling for all', async () => {
    await setCeiling(db(), 'a', 10);
    const all = ceilings(100, 90, 80);
    const low = newTasks(12, { queue: 'a', priority: 'low' });
    expect(accepted(await submitTasks(db(), low, null, all))).toBe(8);
    const high = newTasks(12, { queue: 'a', priority: 'high' });
    expect(accepted(await submitTasks(db(), high, null, all))).toBe(2);
  });

  it('R-AD1: a count that is wrong is put right, and told', async () => {
    await setCeiling(db(), 'a', 10);
    await submitTasks(db(), newTasks(3, { queue: 'a' }), null);
    await submitTasks(db(), newTasks(2), null);
    await db().query('update sluice.admission set admitted = admitted + 7');
    await db().query(
      `update sluice.departures set ended = ended + 2 where slot = 3 and scope = ''`,
    );
    expect(await activeIn(db())).toBe(10);
    expect((await reconcileAdmission(db())).toSorted(byScope)).toEqual([
      { scope: '', by: -5 },
      { scope: 'a', by: -7 },
    ]);
    expect([await activeIn(db()), await activeIn(db(), 'a')]).toEqual([5, 3]);
    expect(await reconcileAdmission(db())).toEqual([]);
  });

  it('R-AD1: a ceiling that was written and not counted is found', async () => {
    const settings = { ...defaultQueueSettings, maxActive: 7 };
    await putQueue(db(), 'a', settings, null);
    await ensureQueues(db(), ['none']);
    await setCeiling(db(), 'gone', 4);
    expect(
      (await findUnsetCeilings(db())).toSorted((a, b) => (a.queue < b.queue ? -1 : 1)),
    ).toEqual([
      { queue: 'a', maxActive: 7 },
      { queue: 'gone', maxActive: null },
    ]);
    await setCeiling(db(), 'a', 7);
    await setCeiling(db(), 'gone', null);
    expect(await findUnsetCeilings(db())).toEqual([]);
  });
});

const byScope = (one: { scope: string }, other: { scope: string }) =>
  one.scope < other.scope ? -1 : 1;

function withNewId(task: NewTask): NewTask {
  return { ...task, taskId: newTask().taskId };
}

describeOnPostgres('the ceiling, with several servers', (postgres) => {
  const servers = (count: number) =>
    Promise.all(Array.from({ length: count }, () => postgres().open({ poolSize: 4 })));

  it('R-AD1: lets in exactly as many, of plain, keyed and workflow submits at once', async () => {
    const dbs = await servers(3);
    const drafts = (n: number): Partial<NewTask> =>
      [{}, { idempotency: newKey(`key ${n}`) }, { workflowId: `w${n % 5}` }][n % 3] ?? {};
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        patiently(() => submitTasks(pick(dbs, n), newTasks(2, drafts(n)), null, ceilings(37))),
      ),
    );
    // Of the two with one key one is a repeat.
    expect(await countTasks(postgres().db)).toBe(37);
    expect(await activeIn(postgres().db)).toBe(37);
    expect(answers.flat().some(({ kind }) => kind === 'refused')).toBe(true);
  });

  it('R-AD1: an open transaction on tasks and on a key keeps nobody out', async () => {
    const [holder, server] = (await servers(2)) as [Database, Database];
    const held = newTask({ idempotency: newKey('held') });
    let letGo: () => void = () => undefined;
    const isHeld = new Promise<void>((ready) => {
      void holder
        .transaction(async (tx) => {
          await tx.query(
            `insert into sluice.idempotency_keys (scope, key, task_id, fingerprint, expires_at)
             values ('owner', 'held', $1, $2, now() + interval '1 day')`,
            [held.taskId, held.idempotency?.fingerprint],
          );
          await tx.query(
            `insert into sluice.tasks (id, queue, task_type, priority, status, queued_at,
               created_at, eligible_at, timeout_seconds, max_retries)
             values ($1, 'default', 'chat', 1, 'queued', now(), now(), now(), 60, 0)`,
            [held.taskId],
          );
          await new Promise<void>((resolve) => {
            letGo = resolve;
            ready();
          });
          throw new Error('rolled back');
        })
        .catch(() => undefined);
    });
    await isHeld;
    const waiting = submitTasks(
      server,
      [newTask({ idempotency: newKey('held') })],
      null,
      ceilings(50),
    ).catch((error: unknown) => error);
    for (let n = 0; n < 20; n += 1) {
      expect(accepted(await submitTasks(postgres().db, newTasks(2), null, ceilings(50)))).toBe(2);
    }
    await waiting;
    letGo();
    expect(await countTasks(postgres().db)).toBe(await activeIn(postgres().db));
  });

  it('R-AD1: whatever happens at once, the counts are those of the tasks', async () => {
    const dbs = await servers(3);
    await setCeiling(postgres().db, 'a', 30);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(anyStep, { minLength: 4, maxLength: 10 }), {
          minLength: 3,
          maxLength: 3,
        }),
        async (scripts) => {
          const known: TaskId[] = [];
          await Promise.all([
            ...scripts.map(async (steps, n) => {
              for (const step of steps) await take(pick(dbs, n), step, known);
            }),
            corruptAndHeal(postgres()),
          ]);
          await reconcileAdmission(postgres().db);
          const { db } = postgres();
          expect(await reconcileAdmission(db)).toEqual([]);
          expect(await activeIn(db)).toBe(await countTasks(db));
          expect(await activeIn(db, 'a')).toBe(await countTasks(db, 'a'));
        },
      ),
      { numRuns: 8 },
    );
  }, 60_000);

  it('R-AD1: without anybody who corrupts them, the counts never drift', async () => {
    const dbs = await servers(3);
    await setCeiling(postgres().db, 'a', 10);
    const script = Array.from({ length: 24 }, (_, n): Step => steps[n % steps.length] ?? 'submit');
    const known: TaskId[] = [];
    await Promise.all(
      dbs.map(async (db, n) => {
        for (const step of script.slice(n)) await take(db, step, known);
      }),
    );
    expect(await reconcileAdmission(postgres().db)).toEqual([]);
    expect(await activeIn(postgres().db)).toBe(await countTasks(postgres().db));
  });

  it('R-AD1: of servers that start together one compares', async () => {
    const dbs = await servers(3);
    await postgres().db.query(`update sluice.admission_check set checked_at = '-infinity'`);
    const began = await Promise.all(dbs.map((db) => beginReconciling(db, 60_000, null)));
    expect(began.filter((isOurs) => isOurs)).toHaveLength(1);
  });
});

const steps = [
  'submit',
  'members',
  'keyed',
  'finish',
  'cancel',
  'replay',
  'expire',
  'fail',
] as const;
type Step = (typeof steps)[number];
const anyStep = fc.constantFrom(...steps);

async function take(db: Database, step: Step, known: TaskId[]): Promise<void> {
  const queue = known.length % 2 === 0 ? 'a' : 'b';
  const recent = known.slice(-12);
  await patiently(async () => {
    switch (step) {
      case 'submit':
      case 'members':
      case 'keyed': {
        const changes = {
          submit: { dispatchDeadlineSeconds: 1 },
          members: { workflowId: 'w' },
          keyed: { idempotency: newKey(`k${known.length % 3}`) },
        }[step];
        const tasks = newTasks(3, { queue, ...changes });
        const answers = await submitTasks(db, tasks, null, ceilings(200));
        known.push(...answers.flatMap((one) => (one.kind === 'created' ? [one.taskId] : [])));
        return;
      }
      case 'finish':
        await completeTasks(
          db,
          (await claimSome(db, recent)).map((held) => completionOf(held)),
          null,
        );
        return;
      case 'fail':
        await endAttempts(db, (await claimSome(db, recent)).map(toDeadLetter), null);
        return;
      case 'cancel':
        await cancelTasks(db, recent.slice(0, 4), null);
        return;
      case 'replay':
        await replayTasks(db, recent, {}, null);
        return;
      case 'expire':
        await expireTasks(db, 4, new Date(Date.now() + 60_000));
    }
  });
}

function claimSome(db: Database, taskIds: readonly TaskId[]): Promise<ClaimedRow[]> {
  const workerId = newWorkerId();
  return claimTasks(
    db,
    taskIds.slice(0, 6).map((id) => claimOf(id, { workerId })),
    0,
    30_000,
    null,
  );
}

async function corruptAndHeal({ db }: TestPostgres): Promise<void> {
  await patiently(() => db.query(`update sluice.admission set admitted = admitted + 5`));
  await patiently(() => reconcileAdmission(db));
  await patiently(() => db.query(`update sluice.departures set ended = ended + 3 where slot = 1`));
  await patiently(() => reconcileAdmission(db));
}

function pick<Item>(items: readonly Item[], n: number): Item {
  const item = items[n % items.length];
  if (item === undefined) throw new Error('there is none');
  return item;
}

/** As the engine does with what somebody else holds for a moment. */
async function patiently<T>(write: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'LockedError') throw error;
    }
  }
}
