import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NodeHttpApi } from '../../src/client/node-http-api.js';
import { startCli, type CliProcess } from '../support/cli.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';

const module = join(import.meta.dirname, 'fixtures/scaled.mjs');
const quick = ['--scale-interval-seconds', '0.2', '--scale-quiet-seconds', '1'];
/** Several processes start one after the other, on a machine that may be busy. */
const slowly = { timeout: 240_000 };
const patience = { deadlineMs: 100_000, everyMs: 100 };
const env = { SLUICE_LOG_LEVEL: 'error', SLUICE_HEARTBEAT_INTERVAL_MS: '500' };

// One for each test: those of a server that was killed are taken for living for a while.
let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

interface Server {
  readonly api: NodeHttpApi;
  readonly url: string;
  readonly process: CliProcess;
}

async function startServer(flags: string[], more: Record<string, string> = {}): Promise<Server> {
  const where = ['--port', '0', '--database-url', database.url];
  const process = startCli(['serve', ...where, ...flags], { env: { ...env, ...more } });
  const [, url = ''] = await process.waitForLine(/^Sluice is ready at (http\S+)/);
  return { api: new NodeHttpApi(url), url, process };
}

const submit = (api: NodeHttpApi, taskType: string, count: number) =>
  api.submitMany(Array.from({ length: count }, () => ({ taskType })));

const activeWorkers = async (api: NodeHttpApi) =>
  (await api.listWorkers({ limit: 100 })).items.filter(({ status }) => status === 'active');

async function isDone(api: NodeHttpApi): Promise<boolean> {
  const unended = ['pending', 'queued', 'assigned', 'executing'] as const;
  const pages = await Promise.all(unended.map((status) => api.listTasks({ status }, { limit: 1 })));
  return pages.every(({ items }) => items.length === 0);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('R-AD5: workers as processes of the server', () => {
  it(
    'come when tasks do, up to the most, drain the work and leave when there is none',
    slowly,
    async () => {
      const scale = ['--scale-module', module, '--scale-max', '3', '--scale-concurrency', '4'];
      const { api, process: server } = await startServer([...scale, ...quick]);
      expect(await activeWorkers(api)).toEqual([]);
      await submit(api, 'where', 500);
      const names = new Set<string | null>();
      let most = 0;
      const isOver = async () => {
        const active = await activeWorkers(api);
        most = Math.max(most, active.length);
        for (const { name } of active) names.add(name);
        return names.size === 3 && (await isDone(api));
      };
      await until('all tasks to be done, by three workers', isOver, patience);
      const { items: done } = await api.listTasks(
        { status: 'completed' },
        { limit: 1000, include: ['result'] },
      );
      expect(done).toHaveLength(500);
      const pids = done.map(({ result }) => Number(result));
      expect(most).toBeLessThanOrEqual(3);
      const areGone = async () => (await activeWorkers(api)).length === 0;
      await until('all of them to be gone', areGone, patience);
      await until('their processes to be gone', () => !pids.some(isAlive), patience);
      const isTold = async () => (await api.getScaling()).current === 0;
      await until('it to be told', isTold, patience);
      const { provisioner } = await api.getScaling();
      expect(provisioner).toMatchObject({ kind: 'process', failingSince: null });
      expect(await server.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    },
  );

  it('that can not start are reported, and nothing else changes', async () => {
    const scale = ['--scale-module', `${module}.missing`, '--scale-min', '1', ...quick];
    const { api } = await startServer(scale);
    const provisioner = await until('the failure to be told', async () => {
      const scaling = await api.getScaling();
      return scaling.provisioner.failingSince !== null && scaling.provisioner;
    });
    expect(provisioner.error).toMatch(/^scaled-\w+-1 could not start: .*scaled\.mjs\.missing/);
    const [outcome] = await submit(api, 'where', 1);
    expect(outcome).toMatchObject({ kind: 'accepted' });
  });
});

describe('R-CH13, R-WO13: with concentrate', () => {
  it('surplus workers get nothing, idle out and leave', async () => {
    const { api, url } = await startServer([], { SLUICE_WAKE_ORDER: 'concentrate' });
    const args = ['worker', '--url', url, '--module', module, '--concurrency', '4'];
    const workers = [1, 2, 3].map(() => startCli([...args, '--max-idle', '3'], { env }));
    await Promise.all(workers.map((worker) => worker.waitForLine(/^Worker \S+ is ready/)));
    // One long task keeps whoever has it.
    const [held] = await submit(api, 'hold', 1);
    if (held?.kind !== 'accepted') throw new Error('it was refused');
    const { taskId } = held.receipt;
    const pid = await until('it to run', async () =>
      Number((await api.getTask(taskId)).progress?.message),
    );
    const busy = workers.find((worker) => worker.pid === pid);
    const surplus = workers.filter((worker) => worker !== busy);
    expect(await Promise.all(surplus.map(({ exited }) => exited))).toEqual([
      { code: 0, signal: null },
      { code: 0, signal: null },
    ]);
    expect(await activeWorkers(api)).toHaveLength(1);
    expect(isAlive(pid)).toBe(true);
  });
});

describe('R-AD5: workers as processes of a server that ends', () => {
  it('end with the server, also when that is killed', async () => {
    const scale = ['--scale-module', module, '--scale-min', '1', '--scale-max', '1'];
    const { api, process: server } = await startServer([...scale, ...quick]);
    await submit(api, 'where', 1);
    const pid = await until('it to be done', async () => {
      const { items } = await api.listTasks(
        { status: 'completed' },
        { limit: 1, include: ['result'] },
      );
      const [latest] = items;
      return latest !== undefined && isAlive(Number(latest.result)) && Number(latest.result);
    });
    await server.kill('SIGKILL');
    await until('its process to be gone', () => !isAlive(pid));
  });
});
