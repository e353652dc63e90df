import { expect, it } from 'vitest';

import { SluiceError } from '../../src/domain/errors.js';
import type { Engine } from '../../src/engine/open-engine.js';
import { until } from '../support/until.js';
import { describeOnEveryEngine, describeOnPostgres, freshQueue, TestWorker } from './support.js';

const quickly = { settings: { retentionIntervalMs: 30 } };

async function submitTypes(engine: Engine, queue: string, from: number, count: number) {
  const many = Array.from({ length: count }, (_, index) => ({
    taskType: `t${from + index}`,
    queue,
  }));
  return engine.submitMany(many);
}

async function setMaxLanes(engine: Engine, queue: string, maxLanes: number): Promise<void> {
  await engine.putQueue(queue, { maxLanes });
}

describeOnEveryEngine('many task types', (under) => {
  const engine = () => under().engine;

  it('R-HA3: a queue takes no more lanes than max_lanes, and says what to do', async () => {
    const queue = freshQueue();
    await setMaxLanes(engine(), queue, 3);
    const outcomes = await submitTypes(engine(), queue, 0, 4);
    expect(outcomes.filter(({ kind }) => kind === 'refused')).toHaveLength(1);
    const refused = await engine()
      .submit({ taskType: 'further', queue })
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(SluiceError);
    expect(refused).toMatchObject({ code: 'too_many_lanes', status: 429, retryAfterSeconds: 60 });
    expect((refused as Error).message).toContain('Put data that varies into the parameters');
    // Those it has go on, and so do other queues.
    expect(await engine().submit({ taskType: 't2', queue })).toMatchObject({ status: 'queued' });
    const elsewhere = await engine().submit({ taskType: 'further', queue: freshQueue() });
    expect(elsewhere).toMatchObject({ status: 'queued' });
    await setMaxLanes(engine(), queue, 4);
    expect(await engine().submit({ taskType: 't3', queue })).toMatchObject({ status: 'queued' });
  });

  it('R-HA3: required capabilities make lanes as well', async () => {
    const queue = freshQueue();
    await setMaxLanes(engine(), queue, 2);
    const sets = [['a'], ['b'], ['a', 'b']];
    const outcomes = await engine().submitMany(
      sets.map((requiredCapabilities) => ({ taskType: 't', queue, requiredCapabilities })),
    );
    expect(outcomes.filter(({ kind }) => kind === 'refused')).toHaveLength(1);
  });

  it('R-HA3: what was accepted before is answered, whatever became of its lane', async () => {
    const queue = freshQueue();
    await setMaxLanes(engine(), queue, 1);
    const draft = { taskType: 't0', queue, idempotencyKey: 'once' };
    const first = await engine().submit(draft);
    await setMaxLanes(engine(), queue, 1);
    expect(await engine().submit(draft)).toMatchObject({ taskId: first.taskId });
  });

  it('R-CH3: a worker for every type gets 3,000 of them in the order they came', async () => {
    const queue = freshQueue();
    const outcomes = await submitTypes(engine(), queue, 0, 3_000);
    expect(outcomes.every(({ kind }) => kind === 'accepted')).toBe(true);
    const { live } = await engine().getQueue(queue);
    expect(live.depth.medium).toBe(3_000);
    const worker = await TestWorker.register(engine(), { queues: [queue], taskTypes: ['*'] });
    const tasks = await worker.take(50);
    expect(tasks).toHaveLength(50);
  });
});

describeOnPostgres('lanes of many servers', (server) => {
  it('R-HA3: the number holds over servers, and a lane that emptied gives up its place', async () => {
    const [one, other] = [await server().open(quickly), await server().open({ role: 'submit' })];
    const queue = freshQueue();
    await setMaxLanes(one, queue, 20);
    await until('the other one knows', async () => {
      return (await other.getQueue(queue)).settings.maxLanes === 20;
    });
    const halves = await Promise.all([
      submitTypes(one, queue, 0, 15),
      submitTypes(other, queue, 10, 15),
    ]);
    const refused = halves.flat().filter(({ kind }) => kind === 'refused');
    expect(refused).toHaveLength(5);
    await server().sql('delete from sluice.tasks where queue = $1', [queue]);
    await server().sql(
      `update sluice.lanes set kept_until = now() - interval '1 s' where queue = $1`,
      [queue],
    );
    const isPurged = async () =>
      (await server().sql('select from sluice.lanes where queue = $1', [queue])).length === 0;
    await until('the lanes are forgotten', isPurged);
    const again = await submitTypes(other, queue, 100, 20);
    expect(again.every(({ kind }) => kind === 'accepted')).toBe(true);
  });

  it('R-HA3: a full queue forgets lanes that were not used before it refuses further ones', async () => {
    const engine = await server().open({ settings: { retentionIntervalMs: 3_600_000 } });
    const queue = freshQueue();
    await setMaxLanes(engine, queue, 3);
    await submitTypes(engine, queue, 0, 3);
    await server().sql(`delete from sluice.tasks where queue = $1 and task_type in ('t0', 't1')`, [
      queue,
    ]);
    await server().sql(
      `update sluice.lanes set kept_until = now() - interval '1 s' where queue = $1`,
      [queue],
    );
    const outcomes = await submitTypes(engine, queue, 10, 3);
    expect(outcomes.filter(({ kind }) => kind === 'accepted')).toHaveLength(2);
  });

  it('R-HA3: one tick forgets more lanes than one statement does', async () => {
    const queue = freshQueue();
    await server().sql(
      `with made as (
         insert into sluice.lanes (queue, task_type, capabilities, kept_until)
         select $1, 't' || n, '{}', now() - interval '1 s' from generate_series(1, 2500) as n
       )
       insert into sluice.lane_counts (queue, lanes) values ($1, 2500)`,
      [queue],
    );
    // Its first tick is its last for an hour.
    await server().open({ settings: { retentionIntervalMs: 3_600_000 } });
    await until('all lanes are forgotten', async () => {
      const counts = await server().sql('select from sluice.lane_counts where queue = $1', [queue]);
      return counts.length === 0;
    });
  });
});
