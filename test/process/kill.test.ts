import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, it, onTestFinished } from 'vitest';

import { openDatabase, type DatabaseOptions } from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import { runCli, startCli, type CliProcess } from '../support/cli.js';
import { createDataFolder } from '../support/pglite.js';
import { createTestDatabase } from '../support/postgres.js';
import { getFreePort } from '../support/services/free-port.js';
import { until } from '../support/until.js';

const count = 5_000;
/** Ends a hung test; how long it takes is the machine's matter, which looking takes time from. */
const patiently = { deadlineMs: 120_000, everyMs: 50 };
const batch = 100;
const numbers = Array.from({ length: count }, (_, n) => n);
/** Heartbeats that an answer to a poll does not fall behind by two, however busy the machine. */
const env = { SLUICE_HEARTBEAT_INTERVAL_MS: '3000', SLUICE_LOG_LEVEL: 'error' };
const workerModule = join(import.meta.dirname, 'fixtures/record.mjs');

it('R-RE8, R-WO9: server killed twice in the middle of 5,000 tasks, embedded', async () => {
  const dataDir = join(temporaryFolder(), 'data');
  createDataFolder(dataDir);
  await survivesKills({ kind: 'pglite', dataDir }, ['--data', dataDir], [1_000, 3_000]);
});

it('R-RE8, R-WO9: server killed in the middle of 5,000 tasks, on Postgres', async () => {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  await survivesKills({ kind: 'postgres', url }, ['--database-url', url], [2_000]);
});

it('a second process on the same data folder is refused, and the next one after a kill serves at once', async () => {
  const dataDir = join(temporaryFolder(), 'data');
  createDataFolder(dataDir);
  const first = await serve(['--data', dataDir, '--port', '0']);
  const { code, stderr } = await runCli(['serve', '--data', dataDir, '--port', '0'], { env });
  expect(code).not.toBe(0);
  expect(stderr).toContain(
    `The data folder ${dataDir} is in use by process ${first.pid}: ` +
      'stop that one, or name another folder.',
  );
  await first.kill('SIGKILL');
  // The lease of the first one has not lapsed.
  const next = await serve(['--data', dataDir, '--port', '0']);
  expect(await next.kill('SIGTERM')).toEqual({ code: 0, signal: null });
});

/** Kills the server when so many have run, while more are submitted, and starts it again. */
async function survivesKills(
  database: DatabaseOptions,
  databaseArgs: readonly string[],
  killAt: readonly number[],
): Promise<void> {
  const port = await getFreePort();
  const url = `http://127.0.0.1:${port}`;
  const serveArgs = [...databaseArgs, '--port', String(port)];
  const recordFile = join(temporaryFolder(), 'runs');
  let server = await serve(serveArgs);
  const workers = await Promise.all([startWorker(url, recordFile), startWorker(url, recordFile)]);

  const submitting = submitAll(url);
  for (const runs of killAt) {
    await until(`${runs} runs`, () => runsIn(recordFile).length >= runs, patiently);
    await server.kill('SIGKILL');
    server = await serve(serveArgs);
  }
  const acknowledged = await submitting;
  await until(
    'every task to have run',
    () => new Set(runsIn(recordFile)).size === count,
    patiently,
  );
  await until('every result to be in', async () => (await countWaiting(url)) === 0, patiently);
  await Promise.all(workers.map((worker) => worker.kill('SIGTERM')));
  await server.kill('SIGTERM');

  // No run was lost, and none was repeated: results outlived the server in their workers.
  expect(runsIn(recordFile).toSorted((a, b) => a - b)).toEqual(numbers);
  const ended = await endedTasks(database);
  expect(ended).toHaveLength(count);
  expect(ended.filter(({ status, result }) => status !== 'completed' || result === null)).toEqual(
    [],
  );
  expect(new Set(ended.map(({ result }) => result))).toEqual(new Set(numbers));
  const completed = new Set(ended.map(({ id }) => id));
  expect(acknowledged.filter((taskId) => !completed.has(taskId))).toEqual([]);
  expect(new Set(acknowledged).size).toBe(count);
}

async function serve(args: readonly string[]): Promise<CliProcess> {
  const server = startCli(['serve', ...args], { env });
  await server.waitForLine(/^Sluice is ready at http/);
  return server;
}

async function startWorker(url: string, recordFile: string): Promise<CliProcess> {
  const args = ['worker', '--url', url, '--module', workerModule, '--concurrency', '50'];
  const worker = startCli(args, { env: { ...env, RECORD_FILE: recordFile } });
  await worker.waitForLine(/^Worker \S+ is ready/);
  return worker;
}

/** Until each is acknowledged; its key makes one task of it, however often it is sent. */
async function submitAll(url: string): Promise<readonly string[]> {
  const taskIds: string[] = [];
  for (let from = 0; from < count; from += batch) {
    const tasks = numbers.slice(from, from + batch).map((n) => ({
      task_type: 'record',
      queue: `queue-${n % 3}`,
      parameters: { n },
      idempotency_key: `record-${n}`,
    }));
    const answer = await until('the submit to be acknowledged', () => post(url, tasks), patiently);
    for (const { task } of answer.results) taskIds.push(task.task_id);
  }
  return taskIds;
}

interface BatchAnswer {
  readonly results: readonly { readonly task: { readonly task_id: string } }[];
}

async function post(url: string, tasks: readonly unknown[]): Promise<BatchAnswer> {
  const response = await fetch(`${url}/api/v1/tasks/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ tasks }),
  });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as BatchAnswer;
}

async function countWaiting(url: string): Promise<number> {
  const states = ['pending', 'queued', 'assigned', 'executing'];
  const pages = await Promise.all(
    states.map(async (state) => {
      const response = await fetch(`${url}/api/v1/tasks?status=${state}&limit=1`);
      return (await response.json()) as { items: unknown[] };
    }),
  );
  return pages.flatMap(({ items }) => items).length;
}

interface EndedTask {
  readonly id: string;
  readonly status: string;
  readonly result: number | null;
}

/** All that there is, living or ended, read when nobody else has the database open. */
async function endedTasks(database: DatabaseOptions): Promise<readonly EndedTask[]> {
  const db = await openDatabase(database, silentLog);
  try {
    return await db.query<EndedTask>(
      `select id, status, result from sluice.task_history
       union all select id, status, null from sluice.tasks`,
    );
  } finally {
    await db.close();
  }
}

function runsIn(path: string): number[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8').trimEnd().split('\n').map(Number);
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-kill-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
