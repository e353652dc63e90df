import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.js';
import { until } from '../../../test/support/until.js';
import { defaultQueueSettings } from '../../domain/queue-settings.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import type { Database } from '../../store/database.js';
import { openPgDatabase } from '../../store/pg-database.js';
import { PgMailbox } from '../../store/pg-mailbox.js';
import { agreeOnRandomHistories } from '../random-histories.contract.js';
import { describeReadyQueueContract } from '../ready-queue.contract.js';
import type { ReadyQueue } from '../ready-queue.js';
import { blank, offerMaker, restore, type ReadyQueueUnderTest } from '../workbench.contract.js';
import { ReplicaReadyQueue } from './replica-ready-queue.js';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = await openPgDatabase({ url: database.url });
});

afterAll(async () => {
  await db.close();
  await database.drop();
});

async function openBox(): Promise<PgMailbox> {
  const box = new PgMailbox({ db, url: database.url });
  await box.open();
  return box;
}

interface Pair extends ReadyQueueUnderTest {
  readonly leader: ReplicaReadyQueue;
  readonly follower: ReplicaReadyQueue;
}

/** What a follower sees. Only the leader restores. */
async function make(): Promise<Pair> {
  const clock = new ManualClock();
  const leader = new ReplicaReadyQueue({ mailbox: await openBox(), clock, log: silentLog });
  const follower = new ReplicaReadyQueue({ mailbox: await openBox(), clock, log: silentLog });
  leader.lead(() => true);
  follower.follow(leader.address);
  const queue = new Proxy<ReadyQueue>(follower, {
    get: (_, name: keyof ReadyQueue) => {
      if (name === 'close') return () => Promise.all([follower.close(), leader.close()]);
      const of = name === 'beginRestore' || name === 'restore' ? leader : follower;
      return of[name].bind(of);
    },
  });
  return {
    queue,
    leader,
    follower,
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    driftMs: 0,
    lose: async () => {
      leader.follow(null);
      leader.lead(() => true);
    },
  };
}

describeReadyQueueContract('ReplicaReadyQueue of a follower', make);

describe('ReplicaReadyQueue', () => {
  it('R-CH10, R-CH12: answers random histories as a queue that sorts everything each time', async () => {
    await agreeOnRandomHistories(make, 60);
  });

  it('R-CH12: what was sent to a leader that is none is answered as by a queue that is away', async () => {
    const { leader, follower } = await make();
    await leader.restore(blank);
    const [task] = [offerMaker()()];
    expect(await follower.offer([task])).toMatchObject({ kind: 'offered' });
    leader.follow(null);
    expect(await follower.offer([task])).toEqual({ kind: 'rebuild' });
    follower.follow(null);
    expect(
      await follower.take({ taskTypes: null, capabilities: [], queues: null, count: 1 }),
    ).toEqual({ kind: 'rebuild' });
    expect(follower.trouble()).toMatch(/No process leads/);
    await Promise.all([follower.close(), leader.close()]);
  });

  it('R-CH5, R-CH12: what was used while nobody led is owed to the next leader', async () => {
    const pair = await make();
    const { leader, follower } = pair;
    const limits = [{ unit: 'tokens', rate: 10, perSeconds: 1, burst: 10 }];
    const settings = { ...defaultQueueSettings, limits };
    const queues = [{ name: 'q', version: 1, settings, pausedForMs: null, probes: null }];
    await restore(pair, { queues });
    leader.follow(null);
    follower.follow(null);
    const ended = { taskId: offerMaker()().taskId, grant: 'of the former', queue: 'q' };
    await follower.finish([{ ...ended, reserved: {}, usage: { tokens: 25 } }]);
    leader.lead(() => true);
    // A leader that is not filled yet hears of nothing that it would forget.
    follower.follow(leader.address);
    await follower.missing([]);
    expect(await leader.beginRestore(2)).toBe('yours');
    await leader.restore({ ...blank, generation: 2, queues });
    await until('it to be owed', async () => {
      const levels = await leader.levels();
      return levels.some(({ tokens }) => tokens === -15);
    });
    await pair.queue.close();
  });

  it('R-CH12: a call under way ends when the leader changes', async () => {
    const { leader, follower } = await make();
    await leader.restore(blank);
    const answer = follower.missing([]);
    follower.follow(null);
    expect(await answer).toEqual([]);
    await Promise.all([follower.close(), leader.close()]);
  });

  it('R-CH12: more calls than may be under way wait for their turn, and keep their order', async () => {
    const pair = await make();
    await restore(pair);
    const task = offerMaker();
    const tasks = Array.from({ length: 600 }, () => task());
    const answers = await Promise.all(tasks.map((one) => pair.follower.offer([one])));
    expect(new Set(answers.map((answer) => answer.kind))).toEqual(new Set(['offered']));
    const ids = tasks.map(({ taskId }) => taskId);
    const taken = await pair.follower.take({
      taskTypes: null,
      capabilities: [],
      queues: null,
      count: 1_000,
    });
    expect(taken.kind === 'taken' && taken.entries.map(({ taskId }) => taskId)).toEqual(ids);
    await pair.queue.close();
  });

  it('R-CH12: a wake that nobody heeds at the leader reaches the followers, and the bus all of them', async () => {
    const pair = await make();
    await restore(pair);
    const heard: unknown[] = [];
    pair.follower.bus.subscribe((message) => heard.push(message));
    pair.leader.bus.subscribe((message) => heard.push(message));
    await pair.follower.missing([]);
    pair.follower.bus.publish({ kind: 'said by the follower' });
    pair.leader.bus.publish({ kind: 'said by the leader' });
    await until('both to hear', () => heard.length === 2);
    expect(heard).toContainEqual({ kind: 'said by the follower' });
    expect(heard).toContainEqual({ kind: 'said by the leader' });
    await pair.queue.close();
  });
});
