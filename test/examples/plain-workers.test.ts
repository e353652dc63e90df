import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { connect, type Sluice, type TaskId, type WorkerId } from '../../src/index.js';
import { serve, type RunningServer } from '../../src/server/serve.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { getServerProgram } from '../support/services/server-program.js';
import { until } from '../support/until.js';
import { openFront, type Call, type Front } from './front.js';
import { Example, runExample, type ExampleOptions } from './run-example.js';

const slots = 10;

const languages = [
  ['plain-fetch-worker.mjs', runExample],
  ['plain_worker.py', runPython],
] as const;

/** What a worker in any language should do, shown with the two that are there to be copied. */
describe.each(languages)('%s', (name, start) => {
  let database: TestDatabase;
  let server: RunningServer;
  let front: Front;
  let sluice: Sluice;
  let worker: Example;

  beforeAll(async () => {
    database = await createTestDatabase();
    server = await serve({
      host: '127.0.0.1',
      port: 0,
      database: { kind: 'postgres', url: database.url },
      // An answer to a poll that is on its way for two of them counts as lost.
      settings: { heartbeatIntervalMs: 1_000 },
    });
    front = await openFront(server.url);
    sluice = connect(server.url);
  });
  afterAll(async () => {
    await front.close();
    await server.close();
    await database.drop();
  });
  beforeEach(async () => {
    worker = start(name, { args: [front.url] });
    front.calls.length = 0;
    await worker.untilLine('registered as ');
  });

  async function submit(text: string, seconds = 0): Promise<TaskId> {
    const parameters = { text, seconds };
    return (await sluice.api.submit({ taskType: 'count-words', parameters })).taskId;
  }

  async function submitAndSeeRun(seconds: number): Promise<TaskId> {
    const taskId = await submit('to be or not', seconds);
    // On a busy machine it may have ended before this looks.
    const begun = ['executing', 'completed'];
    await until('it to run', async () => begun.includes(await statusOf(taskId)));
    return taskId;
  }

  async function statusOf(taskId: TaskId): Promise<string> {
    return (await sluice.api.getTask(taskId)).status;
  }

  function called(call: string): readonly Call[] {
    return front.calls.filter(({ name: called }) => called === call);
  }

  function workerId(): WorkerId {
    const [latest = ''] = worker.lines.filter((said) => said.startsWith('registered')).slice(-1);
    return latest.replace('registered as ', '') as WorkerId;
  }

  it('R-WO11: reports results and failures, and leaves when it is told to', async () => {
    const good = await submit('to be or not');
    const parameters = { seconds: 'a text' };
    const draft = { taskType: 'count-words', parameters, maxRetries: 0 };
    const bad = await sluice.api.submit(draft);
    await expect(sluice.task(good).result()).resolves.toEqual({ words: 4 });
    await expect(sluice.task(bad.taskId).ended()).resolves.toMatchObject({
      status: 'dead_letter',
      error: { code: 'ERROR' },
    });

    worker.kill('SIGTERM');
    expect(await worker.exited).toBe(0);
    expect(await sluice.api.getWorker(workerId())).toMatchObject({ status: 'dead' });
  });

  it('R-WO1: takes only what it has slots for, and all of them', async () => {
    const tasks = await Promise.all(Array.from({ length: 15 }, () => submit('one', 600)));
    await until('its slots to be full', async () => (await running()) === slots);
    const first = tasks.slice(0, slots);
    const last = tasks.slice(slots);
    expect(await Promise.all(last.map(statusOf))).toEqual(last.map(() => 'queued'));

    // It hears of this from a heartbeat: a worker without a free slot does not poll.
    for (const taskId of first) await sluice.task(taskId).cancel();
    await until('the others to run', async () => (await running()) === last.length);
    const asked = called('poll').map(({ body }) => body.available_capacity);
    expect(asked).not.toContain(0);
    await worker.untilLine('CANCELLED', slots);
    for (const taskId of last) await sluice.task(taskId).cancel();
    await worker.untilLine('CANCELLED', tasks.length);
    worker.kill('SIGTERM');
    expect(await worker.exited).toBe(0);

    async function running(): Promise<number> {
      const states = await Promise.all(tasks.map(statusOf));
      return states.filter((state) => state === 'executing').length;
    }
  });

  it('R-WO6: ends an attempt at its timeout', async () => {
    const parameters = { text: 'one', seconds: 600 };
    const draft = { taskType: 'count-words', parameters, timeoutSeconds: 1, maxRetries: 0 };
    const { taskId } = await sluice.api.submit(draft);
    const task = await sluice.task(taskId).ended();
    expect(task).toMatchObject({ status: 'dead_letter', error: { code: 'TIMEOUT' } });
    await worker.untilLine(`${taskId} TIMEOUT`);
  });

  it('R-WO8: finishes what runs when it is told to stop', async () => {
    const taskId = await submitAndSeeRun(1);
    worker.kill('SIGTERM');
    expect(await worker.exited).toBe(0);
    expect(await sluice.api.getTask(taskId)).toMatchObject({ status: 'completed', attempt: 1 });
  });

  it('R-WO5: leaves when the server drains it', async () => {
    const taskId = await submitAndSeeRun(1);
    await sluice.api.drainWorker(workerId());
    expect(await worker.exited).toBe(0);
    expect(await sluice.api.getTask(taskId)).toMatchObject({ status: 'completed', attempt: 1 });
  });

  it('R-WO9: keeps a result while the server is away', async () => {
    const taskId = await submitAndSeeRun(0.5);
    front.seemsAway = true;
    await until('its result to be tried', () => called('result').length > 0);
    front.seemsAway = false;
    await expect(sluice.task(taskId).ended()).resolves.toMatchObject({
      status: 'completed',
      attempt: 1,
    });
  });

  it('R-HA1: keeps a result that a proxy answers in the place of the server', async () => {
    const taskId = await submitAndSeeRun(0.5);
    front.pageStatus = 404;
    await until('its result to be tried twice', () => called('result').length > 1);
    front.pageStatus = null;
    await expect(sluice.task(taskId).ended()).resolves.toMatchObject({
      status: 'completed',
      attempt: 1,
    });
  });

  it('R-WO5: registers again when the server does not know it', async () => {
    const before = workerId();
    await sluice.api.deregister(before);
    await worker.untilLine('registered as ', 2);
    expect(workerId()).not.toBe(before);
    const taskId = await submit('to be or not');
    await expect(sluice.task(taskId).result()).resolves.toEqual({ words: 4 });
  });
});

function runPython(name: string, options: ExampleOptions): Example {
  const python = getServerProgram({
    program: 'python3',
    folders: () => ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin'],
    debianPackage: 'python3',
    remedy: 'The tests need Python 3.9 or later: sudo apt-get install python3.',
  });
  return new Example(python, [], name, options);
}
