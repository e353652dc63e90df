import { expect, it, onTestFinished } from 'vitest';

import type { Engine } from '../../src/engine/open-engine.js';
import { createMetrics } from '../../src/server/metrics.js';
import { askRedis, startRedis } from '../support/services/redis-server.js';
import { describeOnPostgres, TestWorker } from './support.js';

const queues = 300;
const readers = 30;
const watchedMs = 3_000;
/** The live state of each queue is asked for once a second; the rest is for what happens now and then. */
const mostPerSecond = queues + 200;
/** All share this process with the readers; behind 9,000 scripts a second it was one in some seconds. */
const leastRoundsPerSecond = 1;

describeOnPostgres('many readers', (server) => {
  it('R-HA3: cost Redis what one costs, and the takes of another server go on', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const open = () => server().open({ redisUrl: redis.url });
    const [read, other] = [await open(), await open()];
    const names = Array.from({ length: queues }, (_, index) => `many-${String(index)}`);
    await fill(read, names);
    const metrics = createMetrics(read, read);
    const reads = { list: () => read.listQueues({ limit: 1_000 }), scrape: () => metrics.text() };
    const alone = await takesOf(other, redis.url, 'nobody reads');
    for (const [what, ask] of Object.entries(reads)) {
      const done = new AbortController();
      const asking = Array.from({ length: readers }, async () => {
        while (!done.signal.aborted) await ask();
      });
      const { scripts, rounds, seconds } = await takesOf(other, redis.url, what);
      done.abort();
      await Promise.all(asking);
      const ofReaders = scripts - (rounds * alone.scripts) / alone.rounds;
      expect(ofReaders / seconds, what).toBeLessThan(mostPerSecond);
      expect(rounds / seconds, what).toBeGreaterThan(leastRoundsPerSecond);
    }
  });
});

async function fill(engine: Engine, names: readonly string[]): Promise<void> {
  const limits = [{ unit: 'requests', rate: 10, perSeconds: 60 }];
  for (let from = 0; from < names.length; from += 20) {
    const some = names.slice(from, from + 20);
    await Promise.all(some.map((name) => engine.putQueue(name, { limits })));
  }
  for (let type = 0; type < 10; type += 1) {
    const taskType = `type-${String(type)}`;
    await engine.submitMany(names.map((queue) => ({ taskType, queue, parameters: {} })));
  }
}

interface Watched {
  readonly scripts: number;
  readonly rounds: number;
  readonly seconds: number;
}

/** One task after the other, from its submit to its end, and how many scripts Redis runs meanwhile. */
async function takesOf(engine: Engine, redisUrl: string, what: string): Promise<Watched> {
  const queue = `probe-${what}`;
  const worker = await TestWorker.register(engine, { queues: [queue], taskTypes: ['probe'] });
  const before = await scriptsIn(redisUrl);
  const beganMs = performance.now();
  let rounds = 0;
  for (; performance.now() < beganMs + watchedMs; rounds += 1) {
    await engine.submit({ taskType: 'probe', queue, parameters: {} });
    await worker.completeAll(await worker.take(1));
  }
  const seconds = (performance.now() - beganMs) / 1000;
  return { scripts: (await scriptsIn(redisUrl)) - before, rounds, seconds };
}

async function scriptsIn(url: string): Promise<number> {
  const stats = await askRedis(url, 'info', 'commandstats');
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(stats))?.[1] ?? 0);
}
