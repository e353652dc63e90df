import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { TaskId } from '../../src/domain/ids.js';
import type { EngineSettings } from '../../src/engine/settings.js';
import { serve, type RunningServer } from '../../src/server/serve.js';
import { runCli, startCli, type CliProcess } from '../support/cli.js';
import { createTestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';

const tasks = join(import.meta.dirname, 'fixtures/process-tasks.mjs');
const typedTasks = join(import.meta.dirname, 'fixtures/process-tasks.ts');

describe('R-WO10: sluice worker --processes', () => {
  const closing: (() => Promise<void>)[] = [];
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-processes-'));
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function startServer(
    settings: Partial<EngineSettings> = {},
    port = 0,
  ): Promise<RunningServer> {
    const { url, drop } = await createTestDatabase();
    const database = { kind: 'postgres', url } as const;
    const server = await serve({ host: '127.0.0.1', port, database, settings });
    closing.push(() => server.close(), drop);
    return server;
  }

  async function startWorker(
    { url }: RunningServer,
    count: number,
    ...more: string[]
  ): Promise<CliProcess> {
    const size = ['--processes', String(count), '--concurrency', '2'];
    const worker = startCli(['worker', '--url', url, '--module', tasks, ...size, ...more]);
    const noun = count === 1 ? 'process' : 'processes';
    await worker.waitForLine(
      new RegExp(`^Worker is ready with ${count} ${noun} × 2 tasks for hold, nap at http`),
    );
    return worker;
  }

  async function submit({ engine }: RunningServer, taskType: string, count: number) {
    const drafts = Array.from({ length: count }, () => ({ taskType, parameters: {} }));
    const receipts = await Promise.all(drafts.map((draft) => engine.submit(draft)));
    return receipts.map(({ taskId }) => taskId);
  }

  const untilCompleted = ({ engine }: RunningServer, ids: readonly TaskId[]) =>
    until('all tasks to complete', async () => {
      const found = await Promise.all(ids.map((id) => engine.getTask(id)));
      return found.every(({ status }) => status === 'completed');
    });

  /** Of so many lines like "holding 123": which processes printed them. */
  const untilPids = (worker: CliProcess, word: string, count: number) =>
    until(`${count} lines of "${word}"`, () => {
      const matches = worker.stderr.map((line) => new RegExp(`^${word} (\\d+)$`).exec(line));
      const pids = matches.filter((match) => match !== null).map(([, pid]) => Number(pid));
      return pids.length === count && pids;
    });

  it('runs tasks in all of them, and a killed one is started again', async () => {
    // Its task is given to another when its worker has been silent for this long.
    const server = await startServer({ heartbeatIntervalMs: 500, leaseMs: 8_000 });
    const named = ['--name', 'calls', '--module', typedTasks];
    const worker = await startWorker(server, 3, ...named, '--drain-timeout', '1');
    const ids = await submit(server, 'hold', 6);
    const pids = await untilPids(worker, 'holding', 6);
    expect(new Set(pids).size).toBe(3);

    const [pid = 0] = pids;
    process.kill(pid, 'SIGKILL');
    const [, name = ''] = await worker.waitForLine(
      new RegExp(`^(calls-[123]) \\(pid ${pid}\\) was killed by SIGKILL; starting it again in 0`),
    );
    await worker.waitForLine(new RegExp(`^${name} is ready again \\(pid \\d+\\)$`));
    await until('both of its tasks to complete elsewhere', async () => {
      const found = await Promise.all(ids.map((id) => server.engine.getTask(id)));
      return found.filter(({ result }) => result === 2).length === 2;
    });

    const list = await runCli(['workers', '--url', server.url]);
    expect(list.stdout.match(/calls-[123] .* active/g)).toHaveLength(3);
    expect(await worker.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  it('R-WO8: a signal drains all, also when each of them gets it too', async () => {
    const server = await startServer();
    const worker = await startWorker(server, 3);
    const ids = await submit(server, 'nap', 6);
    const pids = await untilPids(worker, 'napping', 6);
    // As a terminal does it; and a service manager does it once more.
    process.kill(-worker.pid, 'SIGINT');
    await worker.waitForLine(/^Draining: what runs has 30 s to finish/);
    for (const pid of new Set(pids)) process.kill(pid, 'SIGTERM');
    expect(await worker.exited).toEqual({ code: 0, signal: null });
    await untilCompleted(server, ids);
    expect(pids.every(isGone)).toBe(true);
  });

  it('R-WO8: a second signal ends all at once', async () => {
    const server = await startServer();
    const worker = await startWorker(server, 2);
    await submit(server, 'hold', 4);
    const pids = await untilPids(worker, 'holding', 4);
    process.kill(worker.pid, 'SIGTERM');
    await worker.waitForLine(/^Draining/);
    expect(await worker.kill('SIGINT')).toEqual({ code: 1, signal: null });
    await until('all processes to be gone', () => pids.every(isGone));
  });

  it('when the parent is killed, the others drain by themselves', async () => {
    const server = await startServer();
    const worker = await startWorker(server, 2, '--drain-timeout', '1');
    const ids = await submit(server, 'hold', 4);
    const pids = await untilPids(worker, 'holding', 4);
    await worker.kill('SIGKILL');
    await until('all processes to be gone', () => pids.every(isGone));
    // Given back at no cost, not lapsed.
    for (const id of ids) {
      expect(await server.engine.getTask(id)).toMatchObject({ status: 'queued', retryCount: 0 });
    }
  });

  it('a module that none of them can load is told once, and ends it with 1', async () => {
    const file = join(folder, 'broken.mjs');
    await writeFile(file, `import './nowhere.mjs';`);
    const worker = ['worker', '--url', 'http://127.0.0.1:1', '--processes', '3', '--module'];
    const broken = await runCli([...worker, file]);
    expect(broken).toMatchObject({ code: 1, stdout: '' });
    expect(broken.stderr.match(/could not be loaded/g)).toHaveLength(1);

    await writeFile(file, 'process.exit(3);');
    expect(await runCli([...worker, file])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'No process could start: each ended with exit code 3.',
    });
    expect(await runCli([...worker, join(folder, 'absent.ts')])).toMatchObject({
      code: 1,
      stderr: `There is no file ${join(folder, 'absent.ts')}.`,
    });
  });

  it('R-OB1: one port has the metrics of all, and a restart takes nothing off the counters', async () => {
    const server = await startServer();
    const worker = await startWorker(server, 2, '--metrics-port', '0');
    const [, address = ''] = await worker.waitForLine(/^Metrics at (http:\S+)$/);
    const metrics = async () => (await (await fetch(address)).text()).split('\n');
    const completed = 'sluice_worker_tasks_completed_total{task_type="nap",status="completed"}';

    await untilCompleted(server, await submit(server, 'nap', 4));
    const [pid = 0] = await untilPids(worker, 'napping', 4);
    await submit(server, 'hold', 4);
    await untilPids(worker, 'holding', 4);
    const lines = await metrics();
    expect(lines).toContain(`${completed} 4`);
    expect(lines).toContain('sluice_worker_in_flight_tasks 4');
    expect(lines).toContain('sluice_worker_capacity_tasks 4');
    expect(lines).toContain('sluice_worker_processes 2');
    expect(lines).toContain('sluice_worker_process_restarts_total 0');
    const napped = '{task_type="nap",status="completed"}';
    expect(lines).toContain(`sluice_worker_task_duration_seconds_count${napped} 4`);
    expect(valueOf(lines, `sluice_worker_task_duration_seconds_sum${napped}`)).toBeGreaterThan(0);
    // Each poll that claimed anything: all of them together claimed what was submitted.
    const polls = valueOf(lines, 'sluice_worker_claims_total{result="tasks"}');
    expect(valueOf(lines, 'sluice_worker_claim_size_count')).toBe(polls);
    expect(valueOf(lines, 'sluice_worker_claim_size_sum')).toBe(8);
    expect(lines.some((line) => /^process_resident_memory_bytes \d/.test(line))).toBe(true);

    const families = lines.map((line) => /^# TYPE (sluice_\w+)/.exec(line)?.[1]);
    expect(families.filter((name) => name !== undefined).toSorted()).toEqual(documented());

    process.kill(pid, 'SIGKILL');
    await worker.waitForLine(/is ready again/);
    const later = await metrics();
    expect(later).toContain(`${completed} 4`);
    expect(later).toContain('sluice_worker_process_restarts_total 1');
    expect((await fetch(new URL('/healthz', address))).status).toBe(200);
    expect((await fetch(new URL('/', address))).status).toBe(404);
  });

  it('R-OB1: a worker that is one process has the same port', async () => {
    const server = await startServer();
    const args = ['worker', '--url', server.url, '--module', tasks, '--metrics-port', '0'];
    const worker = startCli(args);
    const [, address = ''] = await worker.waitForLine(/^Metrics at (http:\S+)$/);
    await submit(server, 'hold', 2);
    await untilPids(worker, 'holding', 2);
    const lines = (await (await fetch(address)).text()).split('\n');
    expect(lines).toContain('sluice_worker_in_flight_tasks 2');
    expect(lines).toContain('sluice_worker_capacity_tasks 1000');
    const taken = await runCli([...args.slice(0, -1), new URL(address).port]);
    expect(taken).toMatchObject({ code: 1, stdout: '' });
    expect(taken.stderr).toMatch(/^Port \d+ is taken by another process\.\n.*--metrics-port/);
  });

  it('R-OB11: /healthz of a worker follows its server: away is 503, back is 200', async () => {
    const settings = { heartbeatIntervalMs: 200, leaseMs: 2_000 };
    const server = await startServer(settings);
    const worker = startCli([
      ...['worker', '--url', server.url, '--module', tasks],
      ...['--metrics-port', '0', '--log-level', 'silent'],
    ]);
    const [, address = ''] = await worker.waitForLine(/^Metrics at (http:\S+)$/);
    expect(await healthOf(address)).toEqual([200, { status: 'ready' }]);
    const failedHeartbeats = async () => {
      const lines = (await (await fetch(address)).text()).split('\n');
      return valueOf(lines, 'sluice_worker_heartbeat_failures_total');
    };
    expect(await failedHeartbeats()).toBe(0);
    const port = Number(new URL(server.url).port);
    await server.close();
    const [, answer] = await until('the worker to say so', async () => {
      const health = await healthOf(address);
      return health[0] === 503 ? health : null;
    });
    expect(answer).toMatchObject({ status: 'failing' });
    expect(String(answer.reason)).toMatch(/has acknowledged no heartbeat for \d+ s/);
    const [readiness] = await healthOf(address, '/readyz');
    expect(readiness).toBe(503);
    const failed = await failedHeartbeats();
    expect(failed).toBeGreaterThan(0);
    await until('the next heartbeat to fail', async () => (await failedHeartbeats()) > failed);
    await startServer(settings, port);
    await until('the worker to be heard again', async () => (await healthOf(address))[0] === 200);
  });

  it('R-OB11: /healthz names a process whose event loop is blocked', async () => {
    const server = await startServer();
    const worker = await startWorker(server, 2, '--metrics-port', '0');
    const [, address = ''] = await worker.waitForLine(/^Metrics at (http:\S+)$/);
    expect(await healthOf(address)).toEqual([200, { status: 'ready' }]);
    await submit(server, 'hold', 4);
    const [pid = 0] = await untilPids(worker, 'holding', 4);
    process.kill(pid, 'SIGSTOP');
    const [status, answer] = await healthOf(address);
    process.kill(pid, 'SIGCONT');
    expect(status).toBe(503);
    expect(String(answer.reason)).toMatch(
      /^worker-[12] does not answer: its event loop is blocked/,
    );
    await until('the process to answer again', async () => (await healthOf(address))[0] === 200);
  });

  it('R-WO13: too old is replaced, idle is not, and the parent leaves with the last', async () => {
    const server = await startServer();
    const old = await startWorker(server, 1, '--max-lifetime', '1');
    await old.waitForLine(/^worker-1 \(pid \d+\) has reached its lifetime; starting another$/);
    await old.waitForLine(/^worker-1 is ready again/);
    expect(await old.kill('SIGTERM')).toEqual({ code: 0, signal: null });

    const idle = await startWorker(server, 2, '--max-idle', '1');
    expect(await idle.exited).toEqual({ code: 0, signal: null });
    expect(idle.stderr.filter((line) => line.endsWith('it is not needed any more'))).toHaveLength(
      2,
    );
  });
});

async function healthOf(
  address: string,
  path = '/healthz',
): Promise<[status: number, answer: Record<string, unknown>]> {
  const response = await fetch(new URL(path, address));
  return [response.status, (await response.json()) as Record<string, unknown>];
}

/** The metrics that docs/operations.md lists of a worker. */
function documented(): string[] {
  const operations = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');
  const [, section = ''] = operations.split('\n## Metrics of a worker\n');
  const [own = ''] = section.split('\n## ');
  return [...own.matchAll(/^\| `(sluice_\w+)/gm)].map(([, name = '']) => name).toSorted();
}

/** Nobody may be there to take a process that ended off the list: it counts as gone. */
function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  const stat = `/proc/${pid}/stat`;
  return existsSync(stat) && readFileSync(stat, 'utf8').includes(') Z ');
}

/** Of one series of a scrape. */
function valueOf(lines: readonly string[], series: string): number {
  const line = lines.find((one) => one.startsWith(`${series} `));
  if (line === undefined) throw new Error(`there is no ${series}`);
  return Number(line.slice(series.length + 1));
}
