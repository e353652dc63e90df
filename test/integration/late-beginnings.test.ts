import { expect, it, onTestFinished } from 'vitest';

import { openEngine } from '../../src/engine/open-engine.js';
import { openHeldLine } from '../support/held-line.js';
import { until } from '../support/until.js';
import { describeOnPostgres, freshQueue, quickTicks, TestWorker } from './support.js';

describeOnPostgres('a server that begins late', (server) => {
  it('R-CH12: does not keep the one that serves by now from handing out', async () => {
    const settings = { ...quickTicks, servingLeaseMs: 2_000, servingRenewMs: 200 };
    const line = await openHeldLine(server().url);
    const isHeld = line.holdFrom('begin_generation');
    const opening = openEngine({ database: { kind: 'postgres', url: line.url }, settings });
    onTestFinished(async () => {
      line.letGo();
      await (await opening).close();
      await line.close();
      await server().sql('delete from sluice.serving');
    });
    await isHeld;
    const engine = await server().open({ settings });
    await until('the other to lead', () => engine.leadership?.leads === true);
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await engine.submit({ taskType: 'noop', queue });
    await worker.complete(await worker.takeOne());
    line.letGo();
    await until('the late one to follow', async () => (await opening).leadership?.leads === false);
    await engine.submit({ taskType: 'noop', queue });
    const tasks = await worker.look(1, { waitMs: 10_000 });
    expect(tasks).toHaveLength(1);
  }, 60_000);
});
