import { afterAll, beforeAll, expect, inject, it } from 'vitest';

import { SluiceError } from '../../src/domain/errors.js';
import type { SubmissionLimit } from '../../src/domain/submission-limit.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { anybody, type Caller } from '../../src/protocol/caller.js';
import type { SubmitOutcome, TaskDraft } from '../../src/protocol/tasks-api.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { until } from '../support/until.js';
import {
  describeOnPostgres,
  drafts,
  freshQueue,
  indexOf,
  quickTicks,
  refusal,
  TestWorker,
} from './support.js';

const perMinute = (rate: number): readonly SubmissionLimit[] => [{ rate, perSeconds: 60 }];

const task: TaskDraft = { taskType: 'noop', queue: 'limited' };

let callers = 0;

/** One that no other test submits for. */
function freshCaller(passesCeilings = false): Caller {
  callers += 1;
  return { ...anybody, owner: `key-${String(callers)}`, passesCeilings };
}

function accepted(outcomes: readonly SubmitOutcome[]): boolean[] {
  return outcomes.map(({ kind }) => kind === 'accepted');
}

function countOf(outcomes: readonly SubmitOutcome[]): number {
  return accepted(outcomes).filter((one) => one).length;
}

async function refusalOf(call: Promise<unknown>): Promise<SluiceError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof SluiceError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

// The store's own tests run on every database; Redis has no part in it.
describeOnPostgres('submission limits', (server) => {
  let under: { readonly engine: Engine; readonly clock: ManualClock };
  beforeAll(async () => {
    const clock = new ManualClock(Date.now());
    const engine = await openEngine({
      database: { kind: 'postgres', url: server().url },
      clock,
      random: () => 0.5,
      settings: {
        ...quickTicks,
        submitLimitPerKey: perMinute(3),
        submitLimitPerUser: perMinute(2),
      },
    });
    under = { engine, clock };
  });
  afterAll(() => under.engine.close());

  it('R-AD4: a key submits so many at once, then none until its window is over', async () => {
    const { engine, clock } = under;
    const caller = freshCaller();
    expect(countOf(await engine.submitMany(drafts(4, task), caller))).toBe(3);
    const { code, message, retryAfterSeconds } = await refusalOf(engine.submit(task, caller));
    expect(code).toBe('refused');
    expect(message).toContain(`API key ${caller.owner} may submit 3 tasks a minute`);
    clock.advance((retryAfterSeconds ?? 0) * 1_000);
    expect(countOf(await engine.submitMany(drafts(4, task), caller))).toBe(3);
  });

  it('R-AD3: Retry-After is when there is room, and a little later', async () => {
    const { engine, clock } = under;
    const caller = freshCaller();
    await engine.submitMany(drafts(3, task), caller);
    const { retryAfterSeconds } = await refusalOf(engine.submit(task, caller));
    // A window, at most a slot more, and half of a tenth.
    expect(retryAfterSeconds).toBeGreaterThanOrEqual(60);
    expect(retryAfterSeconds).toBeLessThanOrEqual(Math.ceil(61.2 * 1.05));
    clock.advance(59_000);
    expect(await refusal(engine.submit(task, caller))).toBe('refused');
    clock.advance(2_300);
    expect(await refusal(engine.submit(task, caller))).toBeNull();
  });

  it('R-AD4: of a batch those that fit pass, in order', async () => {
    const { engine } = under;
    const outcomes = await engine.submitMany(drafts(5, task), freshCaller());
    expect(accepted(outcomes)).toEqual([true, true, true, false, false]);
    const positions = await Promise.all(
      outcomes.flatMap((outcome) =>
        outcome.kind === 'accepted' ? engine.getTask(outcome.receipt.taskId) : [],
      ),
    );
    expect(positions.map(({ parameters }) => parameters.index)).toEqual([0, 1, 2]);
  });

  it('R-AD4: each key and each user has a limit of its own; one who is over it costs others nothing', async () => {
    const { engine } = under;
    const caller = freshCaller();
    const userId = `of ${caller.owner}`;
    const mine = { ...task, userId };
    const batch = [mine, mine, mine, mine, task, task];
    // Two of a user, and of the three of the key one is left.
    const outcomes = await engine.submitMany(batch, caller);
    expect(accepted(outcomes)).toEqual([true, true, false, false, true, false]);
    expect(JSON.stringify(outcomes[2])).toContain(`User \\"${userId}\\" may submit 2 tasks`);
    // The key is used up, whoever the user; another key can't help the user.
    expect(await refusal(engine.submit({ ...task, userId: 'other' }, caller))).toBe('refused');
    expect(await refusal(engine.submit(mine, freshCaller()))).toBe('refused');
    // What the key refused was not taken from the user.
    const another = { ...task, userId: `other of ${caller.owner}` };
    await engine.submit(another, caller).catch(() => undefined);
    expect(countOf(await engine.submitMany([another, another], freshCaller()))).toBe(2);
  });

  it('R-AD3: a repeat of a known task is answered, not refused, and costs nothing', async () => {
    const { engine } = under;
    const caller = freshCaller();
    const keyed = { ...task, idempotencyKey: 'once' };
    const { taskId } = await engine.submit(keyed, caller);
    for (let n = 0; n < 5; n += 1) {
      expect(await engine.submit(keyed, caller)).toMatchObject({ taskId, created: false });
    }
    const other = { ...keyed, parameters: { other: true } };
    expect(await refusal(engine.submit(other, caller))).toBe('idempotency_conflict');
    expect(countOf(await engine.submitMany(drafts(3, task), caller))).toBe(2);
    expect(await engine.submit(keyed, caller)).toMatchObject({ taskId, created: false });
    expect(await refusal(engine.submit(other, caller))).toBe('idempotency_conflict');
    expect(await refusal(engine.submit({ ...task, idempotencyKey: 'new' }, caller))).toBe(
      'refused',
    );
  });

  it('R-AD3: a key that has expired is no reason to be answered', async () => {
    const { engine, clock } = under;
    const caller = freshCaller();
    const keyed = { ...task, idempotencyKey: 'once' };
    await engine.submit(keyed, caller);
    clock.advance(24 * 3_600_000);
    await engine.submitMany(drafts(3, task), caller);
    expect(await refusal(engine.submit(keyed, caller))).toBe('refused');
  });

  it('R-AD4: a key that passes the ceilings does not pass these limits', async () => {
    const outcomes = await under.engine.submitMany(drafts(4, task), freshCaller(true));
    expect(countOf(outcomes)).toBe(3);
  });

  it('R-AD4: a user by a name that is no text is limited as well', async () => {
    const { engine } = under;
    const caller = freshCaller();
    const batch = ['\ud800', '\udfff', '\ufffd'].map((end) => ({
      ...task,
      userId: `${caller.owner} ${end}`,
    }));
    expect(accepted(await engine.submitMany(batch, caller))).toEqual([true, true, false]);
  });

  it('R-AD4: callers without a key count as one', async () => {
    const { engine, clock } = under;
    clock.advance(120_000);
    expect(countOf(await engine.submitMany(drafts(4, task)))).toBe(3);
    const { message } = await refusalOf(engine.submit(task));
    expect(message).toContain('All callers without an API key together may submit 3 tasks');
  });

  it('R-HA3: what a limit refuses takes no lane, and what finds no lane counts for no limit', async () => {
    const { engine } = under;
    const caller = freshCaller();
    const queue = freshQueue();
    const lanes = () => server().sql('select from sluice.lanes where queue = $1', [queue]);
    const types = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ taskType: `t${String(index)}`, queue }));
    await engine.putQueue(queue, { maxLanes: 2 });
    const outcomes = await engine.submitMany(types(4), caller);
    expect(outcomes.map((one) => (one.kind === 'refused' ? one.code : one.kind))).toEqual([
      ...['accepted', 'accepted', 'too_many_lanes', 'refused'],
    ]);
    // The third of its three was given back.
    expect(countOf(await engine.submitMany(types(2), caller))).toBe(1);
    await engine.putQueue(queue, { maxLanes: 9 });
    const refused = await engine.submitMany(types(9), caller);
    expect(countOf(refused)).toBe(0);
    expect(await lanes()).toHaveLength(2);
  });

  it('R-WO2: members of a workflow of several types stay in their order', async () => {
    const { engine } = under;
    const queue = freshQueue();
    await engine.putQueue(queue, { maxLanes: 9 });
    await engine.submit({ taskType: 'known', queue }, freshCaller());
    const workflowId = `flow of ${queue}`;
    const members = ['new', 'known', 'newer'].map((taskType) => ({ taskType, queue, workflowId }));
    const worker = await TestWorker.register(engine, { queues: [queue], taskTypes: ['*'] });
    await worker.complete(await worker.takeOne());
    expect(countOf(await engine.submitMany(members, freshCaller()))).toBe(3);
    for (const { taskType } of members) {
      const member = await worker.takeOne();
      expect(member.taskType).toBe(taskType);
      await worker.complete(member);
    }
  });

  it('R-WO2: members of a workflow stay in the order they were submitted in', async () => {
    const { engine } = under;
    const queue = freshQueue();
    const members = drafts(3, { ...task, queue, workflowId: `flow of ${queue}` });
    expect(countOf(await engine.submitMany(members, freshCaller()))).toBe(3);
    const worker = await TestWorker.register(engine, { queues: [queue] });
    for (const index of [0, 1, 2]) {
      const member = await worker.takeOne();
      expect(indexOf(member)).toBe(index);
      await worker.complete(member);
    }
  });
});

describeOnPostgres('submission limits of several processes', (server) => {
  const limited = { submitLimitPerKey: perMinute(100) };

  async function submitApart(engines: readonly Engine[], draft: TaskDraft, caller: Caller) {
    const calls = Array.from({ length: 200 / engines.length }, () =>
      engines.map((engine) => engine.submit(draft, caller)),
    ).flat();
    const answers = await Promise.allSettled(calls);
    const refused = answers.filter((answer) => answer.status === 'rejected');
    for (const { reason } of refused) {
      expect(reason).toBeInstanceOf(SluiceError);
      expect(reason).toMatchObject({ code: 'refused' });
    }
    return answers.length - refused.length;
  }

  it('R-AD4: 200 at once over two servers at 100 a minute: exactly 100 are accepted', async () => {
    const redisUrl = inject('redisUrl');
    // However slow the machine, the minute is not over.
    const clock = new ManualClock(Date.now());
    const open = () => server().open({ redisUrl, clock, settings: limited });
    const engines = await Promise.all([open(), open()]);
    const caller = freshCaller();
    expect(await submitApart(engines, { ...task, queue: 'two-servers' }, caller)).toBe(100);
    const [count] = await server().sql<{ n: string }>(
      `select count(*) as n from sluice.tasks where queue = 'two-servers'`,
    );
    expect(Number(count?.n)).toBe(100);
  });

  it('R-AD4: two servers and those that only submit count together, also after a restart', async () => {
    const clock = new ManualClock(Date.now());
    const open = (role: 'serve' | 'submit') => server().open({ role, clock, settings: limited });
    const engines = [
      await open('serve'),
      await open('serve'),
      await open('submit'),
      await open('submit'),
    ];
    const caller = freshCaller();
    expect(await submitApart(engines, { ...task, queue: 'four' }, caller)).toBe(100);
    await Promise.all(engines.map((engine) => engine.close()));
    const again = await open('submit');
    expect(await refusal(again.submit(task, caller))).toBe('refused');
  });

  it('R-AD4: who waits behind a lock is let through in its turn, and others do not wait with it', async () => {
    const engine = await server().open({ settings: limited });
    const [slow, quick] = [freshCaller(), freshCaller()];
    await engine.submit(task, slow);
    const holder = await server().connect();
    await holder.query('begin');
    await holder.query('select from sluice.submissions where subject = $1 for update', [
      `key ${slow.owner}`,
    ]);
    const waiting = refusal(engine.submit(task, slow));
    await engine.submit(task, quick);
    await holder.query('rollback');
    // It does not wait for ever, and a machine may be slow.
    if ((await waiting) === 'unavailable') await engine.submit(task, slow);
    else expect(await waiting).toBeNull();
  });

  it('R-AD4: without limits nothing is counted', async () => {
    await server().sql('delete from sluice.submissions');
    const engine = await server().open();
    await engine.submitMany(drafts(10, { ...task, userId: 'u' }), freshCaller());
    expect(await server().sql('select subject from sluice.submissions')).toEqual([]);
  });

  it('R-AD4: those who submit no more are forgotten', async () => {
    const clock = new ManualClock(Date.now());
    const engine = await server().open({ clock, settings: limited });
    await engine.submit(task, freshCaller());
    await engine.close();
    clock.advance(2 * 3_600_000);
    // On boot, and every minute.
    await server().open({ clock });
    await until('what was counted to be purged', async () => {
      const rows = await server().sql('select subject from sluice.submissions');
      return rows.length === 0;
    });
  });

  it('R-RE10: limits that make no sense stop the start', async () => {
    const opening = server().open({
      settings: { submitLimitPerUser: [{ rate: 0, perSeconds: 60 }] },
    });
    await expect(opening).rejects.toThrow(/submitLimitPerUser must be up to 4 limits/);
  });
});
