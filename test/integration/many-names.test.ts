import { monitorEventLoopDelay } from 'node:perf_hooks';
import { beforeAll, expect, it } from 'vitest';
import type { WorkerId } from '../../src/domain/ids.js';
import { openPgDatabase } from '../../src/store/pg-database.js';
import { registerWorker } from '../../src/store/workers.js';
import { newWorkerId } from '../store/lifecycle.js';
import { describeOnPostgres, submitAll, type TestServer } from './support.js';

const strangers = 700;
const equals = 700;
const lanes = 1_000;
/** A turn of the event loop on a machine that is busy with other tests, too. Without bounds each took seconds. */
const longestTurnMs = 250;

/** 1,000 names of 60 bytes: nearly all that a worker may name. */
const typesOf = (prefix: string) =>
  Array.from({ length: 1_000 }, (_, n) => `${prefix}.${n}`.padEnd(60, '-'));

/** Workers that no server has heard of, as after a restart: each of the first kind names other task types. */
async function registerMany(server: TestServer): Promise<WorkerId[]> {
  const db = await openPgDatabase({ url: server.url });
  const register = async (taskTypes: readonly string[]): Promise<WorkerId> => {
    const workerId = newWorkerId();
    await registerWorker(db, workerId, { taskTypes, capacity: 1 }, null);
    return workerId;
  };
  const workerIds: WorkerId[] = [];
  for (let n = 0; n < strangers; n += 1) workerIds.push(await register(typesOf(`w${n}`)));
  for (let n = 0; n < equals; n += 1) workerIds.push(await register(typesOf('equal')));
  await db.close();
  return workerIds;
}

/** The longest time for which nothing else had its turn. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  await work();
  await new Promise((resolve) => setTimeout(resolve, 20));
  delay.disable();
  return delay.max / 1e6;
}

type Asked = Readonly<Record<string, () => Promise<unknown>>>;

/** Those that held up others for too long, and for how long. */
async function tooLong(asked: Asked): Promise<string[]> {
  const found: string[] = [];
  for (const [name, ask] of Object.entries(asked)) {
    const tookMs = await longestTurn(ask);
    if (tookMs > longestTurnMs) found.push(`${name}: ${Math.round(tookMs)} ms`);
  }
  return found;
}

describeOnPostgres('workers that name very many task types', (server) => {
  let workerIds: WorkerId[];
  beforeAll(async () => {
    workerIds = await registerMany(server());
  });

  it('R-HA4: scaling, forecasts and explanations hold up nobody', async () => {
    const engine = await server().open();
    await engine.putQueue('limited', {
      limits: [{ unit: 'requests', rate: 1, perSeconds: 3_600 }],
    });
    const draftsOf = (queue: string) =>
      Array.from({ length: lanes }, (_, n) => ({ taskType: `t${n}`, queue }));
    await submitAll(engine, draftsOf('free'));
    const last = (await submitAll(engine, draftsOf('limited'))).at(-1);
    if (last === undefined) throw new Error('tasks were submitted');
    const explain = () => engine.explainTask(last);
    const asked = {
      scaling: () => engine.getScaling(),
      forecast: () => engine.getForecast('free'),
      explain,
      'explain again': explain,
    };
    expect(await tooLong(asked)).toEqual([]);
    const { current, reason } = await engine.getScaling();
    expect(current).toBe(strangers + equals);
    expect(reason).toMatch(/What \d+ workers can do was not looked at/);
  });

  it('R-HA4: many heartbeats of workers that a server does not know hold up nobody', async () => {
    const engine = await server().open();
    const beat = { currentLoad: 0, status: 'active' } as const;
    const before = process.cpuUsage();
    await Promise.all(workerIds.map((workerId) => engine.heartbeat(workerId, beat)));
    // Without reading what they name it is 0.06 s; with it 1.5 s.
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(0.6);
  });
});
