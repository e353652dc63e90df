import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, inject, it, onTestFinished } from 'vitest';

import { runCli } from '../support/cli.js';
import { createTestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { startTestWorker, TestServer } from './servers.js';

const waitTask = join(import.meta.dirname, 'fixtures/wait.mjs');
/** Heartbeats that come too late for any test: what is heard of, is so by other ways. */
const rareHeartbeats = { SLUICE_HEARTBEAT_INTERVAL_MS: '900000', SLUICE_LEASE_MS: '3600000' };

it('R-CH12: a server with Redis and one without refuse each other, naming REDIS_URL', async () => {
  const redisUrl = inject('redisUrl');
  const [ofMany, ofOne] = await Promise.all([ownDatabase(), ownDatabase()]);
  await Promise.all([TestServer.start(ofMany, redisUrl), TestServer.start(ofOne, null)]);
  const refusals = await Promise.all([
    refusalOf(ofMany, []),
    refusalOf(ofOne, ['--redis-url', redisUrl]),
  ]);
  expect(refusals).toEqual([
    'Servers with Redis serve this database. Give this one the same REDIS_URL.',
    'A server without Redis serves this database. Give it the same REDIS_URL and start it again, ' +
      'or start this one without REDIS_URL.',
  ]);
});

it('R-WO7, R-CH12: cancelled at one server, a handler that polls another hears of it', async () => {
  const { first, second } = await startTwo(rareHeartbeats);
  const recordFile = join(temporaryFolder(), 'record');
  const worker = { module: waitTask, concurrency: 10, env: { RECORD_FILE: recordFile } };
  await startTestWorker(second, worker);
  for (let round = 0; round < 5; round += 1) {
    const { taskId } = await first.api.submit({ taskType: 'wait' });
    await untilRecorded(recordFile, `began ${taskId}`);
    await expect(first.api.cancelTask(taskId)).resolves.toMatchObject({ wasExecuting: true });
    await untilRecorded(recordFile, `stopped ${taskId}`);
  }
});

it('R-CH7: of two PUTs at once, at two servers, both keep the same', async () => {
  const { first, second } = await startTwo();
  for (let round = 1; round <= 20; round += 1) {
    await Promise.all([
      first.api.putQueue('both', { maxConcurrency: round }),
      second.api.putQueue('both', { maxConcurrency: 1_000 + round }),
    ]);
    const here = await first.api.getQueue('both');
    const there = await second.api.getQueue('both');
    expect(there.settings).toEqual(here.settings);
    expect(there.version).toBe(here.version);
    expect([round, 1_000 + round]).toContain(here.settings.maxConcurrency);
  }
});

async function startTwo(
  more: Readonly<Record<string, string>> = {},
): Promise<{ first: TestServer; second: TestServer }> {
  const databaseUrl = await ownDatabase();
  const redisUrl = inject('redisUrl');
  const [first, second] = await Promise.all([
    TestServer.start(databaseUrl, redisUrl, more),
    TestServer.start(databaseUrl, redisUrl, more),
  ]);
  return { first, second };
}

async function ownDatabase(): Promise<string> {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  return url;
}

async function refusalOf(databaseUrl: string, args: readonly string[]): Promise<string> {
  const { code, stderr } = await runCli(
    ['serve', '--port', '0', '--database-url', databaseUrl, '--log-level', 'error', ...args],
    { env: { REDIS_URL: undefined } },
  );
  expect(code).not.toBe(0);
  return stderr.split('\n').find((line) => line.includes('REDIS_URL')) ?? stderr;
}

async function untilRecorded(path: string, line: string): Promise<void> {
  await until(line, () => existsSync(path) && readFileSync(path, 'utf8').includes(`${line}\n`));
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-many-servers-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
